"""Finds text on a page that does not stand out (WCAG 2, 4.5:1), for browser tests."""

CONTRAST = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgb = (color, under) => {
    canvas.clearRect(0, 0, 1, 1);
    if (under) { canvas.fillStyle = under; canvas.fillRect(0, 0, 1, 1); }
    canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (color) => {
    const [r, g, b] = color.map((c) => c / 255)
      .map((c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if (rgb(color)[3] === 255) return color;
    }
    return "Canvas";
  };
  const low = new Set();
  for (const one of document.querySelectorAll("main *, header *, nav *")) {
    const says = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!says || !one.checkVisibility()) continue;
    const under = behind(one), style = getComputedStyle(one);
    canvas.globalAlpha = +style.opacity;
    const ink = rgb(style.color, under);
    canvas.globalAlpha = 1;
    const [a, b] = [light(ink), light(rgb(under))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) low.add(`${one.tagName}.${one.className} ${ratio.toFixed(2)}`);
  }
  return [...low];
}"""
