"""Texts that have run, loaded or broken something in other people's reports."""

CARD_NAMES = (
    '<script>document.title="OWNED"</script>',
    '"><img src=x onerror=document.title="OWNED">',
    "' onmouseover='document.title=\"OWNED\"",
    "</title><h1>big</h1>",
    '=HYPERLINK("http://example.invalid","x")',
)
MESSAGES = (
    '</script><script>document.title="OWNED"</script>',
    "<!-- open comment",
    "<!--<script>",
    '<svg/onload=document.title="OWNED">',
    '[click](javascript:document.title="OWNED")',
    "![pic](http://example.invalid/p.png)",
    "<style>body{display:none}</style>",
    "</div></div></table></dialog></template>",
    "{{7*7}} ${7*7} {% raw %}",
    "AT&amp;T &lt;b&gt; stays as typed",
    "line\u2028separator\u2029and paragraph",
    "right\u202eto left, then tabs\t and\r\nlines\rand \0 nul",
    ']]> "\\u003c" \\',
)
REASONS = ("<b>bold</b> reason with <think> tag", "`</pre>`")
MODEL_IDS = ('org/model<script>document.title="OWNED"</script>', "a\"b'c")
FILE_NAMES = ('<img src=x onerror=document.title="OWNED">.json',)
ERRORS = (
    'HTTP 500 <html><body onload=document.title="OWNED">',
    "\x1b[31mred\x1b[0m \x1b]0;OWNED\x07",
)
EVERYTHING = (*CARD_NAMES, *MESSAGES, *REASONS, *MODEL_IDS, *FILE_NAMES, *ERRORS)
