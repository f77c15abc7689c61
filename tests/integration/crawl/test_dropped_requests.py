"""A request that is given up is taken back: what the system has queued must not reach the host later."""


def test_a_request_that_is_given_up_ends_with_a_reset(tamias, site):
    ended = []

    def silent(handler):
        try:
            ended.append(handler.connection.recv(1))
        except ConnectionResetError:
            ended.append("reset")

    site.pages["/silent"] = silent
    tamias.env |= {"TAMIAS_FETCH__FIRST_BYTE_TIMEOUT": "1"}
    done = tamias.crawl(site.url("/silent"), "--max-wait", "0")
    assert done.returncode, done.stdout
    tamias.wait_until(lambda: ended)
    assert set(ended) == {"reset"}


def test_what_was_answered_ends_as_always(tamias, site):
    """No reset: a server may count them."""
    ended = []

    def page(handler):
        handler.close_connection = False
        body = b"<http://a.example/> <http://a.example/p> 1 ."
        handler.send_response(200)
        handler.send_header("Content-Type", "text/turtle")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        try:
            ended.append(handler.connection.recv(1))
        except ConnectionResetError:
            ended.append("reset")
        handler.close_connection = True

    site.pages["/page"] = page
    assert tamias.crawl(site.url("/page")).returncode == 0
    tamias.wait_until(lambda: ended)
    assert ended == [b""]
