"""Links keep their words where their page is read in the sandbox."""

LINKS = "SELECT to_url, anchor, context_left, context_right, count, language FROM links ORDER BY to_url"
PAGE = """<html lang=en><body><p>before <a href="/x">anchor é</a> after</p>
<p><a hreflang=fr href="/y">y</a> <a href="/y">again</a></p></body></html>"""


def test_of_a_page_that_is_read_in_the_sandbox(tamias, site, reply, asked):
    site.pages["/"] = reply(200, PAGE.encode(), Content_Type="text/html; charset=utf-8")
    for path in ("/x", "/y"):
        site.pages[path] = reply(200, b"<html></html>", Content_Type="text/html")
    tamias.env |= {"TAMIAS_STRATEGY__LINKS": "true", "TAMIAS_SANDBOX__USE": "always"}
    done = tamias.crawl("--no-robots", site.url("/"))
    assert done.returncode == 0, done.stderr
    assert asked(LINKS) == [
        (site.url("/x"), "anchor é", "before", "after", 1, "en"),
        (site.url("/y"), "y", "", "again", 2, "fr"),
    ]
