"""A page in a real browser that tells of whatever it does and should not."""


def watched(browser, path):
    """The page at `path`, opened, which asked for itself alone; `page.incidents` is empty then."""
    page = browser.new_page()
    page.incidents = []
    page.on("dialog", lambda dialog: (page.incidents.append(dialog.message), dialog.dismiss()))
    page.on("console", lambda message: page.incidents.append(message.text))
    page.on("pageerror", lambda error: page.incidents.append(str(error)))
    page.on("request", lambda request: page.incidents.append(request.url))
    page.goto(path.as_uri())
    assert page.incidents == [path.as_uri()]
    page.incidents.clear()
    return page
