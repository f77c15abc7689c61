"""Which of the older code pages a text is in, by how its words would look.

Western Europe's is the answer unless another makes clearly better words.
"""

import re

WESTERN = "cp1252"

_COMMON = {
    "cp950": "的一是不有人中大上國以要用為市區路鄉鎮縣號街段里村臺灣日月年時電話地址名稱水山公園資料",
    "gb18030": "的一是不有人中大上国以要用为市区路乡镇县号街段里村日月年时电话地址名称水山公园资料据",
    "cp932": "のにはをたがでてとしれさあいうるなもすりこだらまんく市区町村年月日県都",
    "euc_jp": "のにはをたがでてとしれさあいうるなもすりこだらまんく市区町村年月日県都",
    "cp949": "이다는에의가을를하고지사도로서기시구동리군면읍대한국년월일수정인",
    "cp1251": "оеаинтсрвлкмдпуяыьгзбОАИНСРВКМГ",
    "koi8-r": "оеаинтсрвлкмдпуяыьгзбОАИНСРВКМГ",
    "cp1253": "αοιετσνηυρπκμλωςάίόέήύΑΕΟΙ",
}
"""Of each code page of another script, characters that make up much of any text in it."""

_LEAST_COMMON = {name: 0.5 if name in ("cp1251", "koi8-r", "cp1253") else 0.1 for name in _COMMON}
"""The share of them in a text: an alphabet is short, and a list of names is not a usual text."""

_CENTRAL = ("cp1250", "iso8859-2")
_WESTERN_SIGN = re.compile(r"(?<=\w)[^\w\s'\u2019\u00ad\u2010-\u2015](?=\w)")
_RUN = re.compile(rb"[\x80-\xff]+")


def code_page(sample: bytes) -> str:
    """The name of the code page that a text is most likely in."""
    runs = _RUN.findall(sample)
    high = sum(map(len, runs))
    if high and sum(len(run) for run in runs if len(run) > 2) > high / 2:
        shares = {name: _share(sample, name) / _LEAST_COMMON[name] for name in _COMMON}
        best = max(shares, key=shares.__getitem__)
        if shares[best] >= 1:
            return best
    return _latin(sample, high)


def _share(sample: bytes, name: str) -> float:
    """How much of what is not ASCII is what one would expect; nothing, if too much cannot be decoded."""
    beyond = [sign for sign in sample.decode(name, "replace") if sign > "\x7f"]
    if not beyond or beyond.count("\ufffd") * 50 > len(beyond):
        return 0.0
    return sum(sign in _COMMON[name] for sign in beyond) / len(beyond)


def _latin(sample: bytes, high: int) -> str:
    """A sign such as ³ or ¿ within words is a letter of another code page."""
    odd = _odd(sample, WESTERN)
    if odd * 20 < high or odd < 3:
        return WESTERN
    best = min(_CENTRAL, key=lambda name: _odd(sample, name))
    return best if _odd(sample, best) * 4 < odd else WESTERN


def _odd(sample: bytes, name: str) -> int:
    text = sample.decode(name, "replace")
    return sum(sign > "\x7f" for sign in _WESTERN_SIGN.findall(text))
