"""The page of the console in Chromium, as a person uses it. Run by main.rs with one JSON object:
`base` and `token` of a console, `session` that comes back when it is disconnected, `sessions` there
are in all, and `pictures`, a folder for screenshots or null. Prints what it saw as JSON."""

import json
import re
import sys
import time
import urllib.request
from contextlib import contextmanager
from urllib.parse import parse_qsl, urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

GIVEN = json.loads(sys.argv[1])
BASE, TOKEN = GIVEN["base"], GIVEN["token"]
VIEWS = ["overview", "lines", "sessions", "instruments", "stages", "notices"]
PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)


def api(path):
    """What the API says, asked beside the page."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    request = urllib.request.Request(f"{BASE}/api/v1/{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def all_sessions():
    """All sessions by name, over all pages of the answer."""
    found, after = {}, ""
    while after is not None:
        page = api(f"sessions?limit=1000{after and f'&after={after}'}")
        found.update({one["session"]: one for one in page["sessions"]})
        after = page["next"]
    return found


def number(text):
    """A number as the page writes it, with thousands apart."""
    return int(re.sub(r"\s", "", text))


def eventually(what, holds):
    until = time.monotonic() + PATIENCE / 1000
    while not holds():
        assert time.monotonic() < until, f"waited for {what}"
        time.sleep(0.05)


class Watched:
    """A page whose requests and errors are kept."""

    def __init__(self, browser, **options):
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.elsewhere, self.errors = [], []
        self.expected = []
        self.page.on("request", self._asked)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _asked(self, request):
        if not request.url.startswith(BASE + "/"):
            self.elsewhere.append(request.url)

    def _said(self, message):
        text = f"{message.text} {message.location.get('url', '')}"
        if message.type in ("error", "warning") and not any(e in text for e in self.expected):
            self.errors.append(text)

    @contextmanager
    def expecting(self, *texts):
        """Errors with these texts are the test's own doing from now on: they may come late."""
        self.expected.extend(texts)
        yield

    def view(self, name):
        self.page.goto(f"{BASE}/#/{name}")
        expect(self.page.locator("h1")).to_be_visible()

    def close(self):
        assert not self.elsewhere, self.elsewhere
        assert not self.errors, self.errors
        self.context.close()


@contextmanager
def answering(page, parts, answer):
    """Has `answer`, in place of the gateway, answer what is asked of these parts of the API: it
    gets the parameters, and returns the arguments of `fulfill`."""
    path = re.compile(rf"/api/v1/({parts})(\?|$)")

    def handle(route):
        asked = dict(parse_qsl(urlsplit(route.request.url).query))
        route.fulfill(**answer(asked))

    page.route(path, handle)
    yield
    page.unroute(path, handle)


def enter(watched):
    """Without a token nothing is shown; a wrong one is refused. What is typed stays in the form."""
    page = watched.page
    page.goto(BASE)
    expect(page.get_by_role("heading", name="Token required")).to_be_visible()
    faults(page, "lock")
    field, refusal = page.get_by_label("Token"), page.get_by_role("alert")
    for no_token in ("a-token-that-costs-5-€", "too-short", "a-token with a space"):
        field.fill(no_token)
        page.keyboard.press("Enter")
        expect(refusal).to_contain_text("16 to 256 printable ASCII characters")
        expect(field).to_have_value(no_token)
    with watched.expecting("401"):
        field.fill("not-the-right-token")
        page.keyboard.press("Enter")
        expect(refusal).to_contain_text("The gateway refuses this token")
    field.fill("half-a-tok")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    for view in ("Lines", "Overview"):
        link = page.get_by_role("link", name=view)
        link.click()
        expect(link).to_have_attribute("aria-current", "page")
    expect(field).to_have_value("half-a-tok")
    field.fill(TOKEN)
    page.keyboard.press("Enter")
    expect(page.locator(".verdict")).to_be_visible()
    kept = page.evaluate("[JSON.stringify(localStorage), document.cookie, location.href]")
    assert TOKEN not in "".join(kept), kept


def overview(watched):
    """Figures are the API's, and charts move."""
    page = watched.page
    watched.view("overview")
    ports = {port["name"]: port["sessions"] for port in api("status")["ports"]}
    for name, sessions in ports.items():
        shown = page.locator(f"#sessions-{name}")
        eventually(f"sessions of {name}", lambda: number(shown.inner_text()) == sessions)
    feeds = api("lines")["feeds"]
    live = [sum(feed[what] for feed in feeds) for what in ("live", "instruments")]
    if live[0] == live[1]:
        expect(page.locator("#live")).to_have_text(f"{live[0]} of {live[1]}")
    plot = page.locator(".overview .plot").first
    canvas = page.locator(".overview canvas").first
    drawn = lambda: canvas.evaluate("canvas => canvas.toDataURL()")
    points = lambda: int(plot.get_attribute("data-points"))
    eventually("a chart", lambda: canvas.count() == 1)
    before = (points(), drawn())
    eventually("charts that move", lambda: points() >= before[0] + 2 and drawn() != before[1])
    label = plot.get_attribute("aria-label")
    assert re.search(r"to consumers [\d\s.]+", label), label


def lines(watched):
    """Each line's figures lie between what the API said before and behind."""
    page = watched.page
    watched.view("lines")
    rows = page.locator("tbody tr")
    expect(rows.first).to_be_visible()
    count = lambda: [line for feed in api("lines")["feeds"] for line in feed["lines"]]
    for column, name in ((1, "packets"), (3, "first"), (4, "duplicate"), (7, "lost")):
        before = [line[name] for line in count()]
        cells = rows.locator(f"> :nth-child({column + 1})")
        shown = lambda: [number(text) for text in cells.all_inner_texts()]
        eventually(f"new {name}", lambda: all(a <= b for a, b in zip(before, shown())))
        seen = shown()
        behind = [line[name] for line in count()]
        assert len(seen) == len(behind) and all(a <= b for a, b in zip(seen, behind)), name
    expect(page.locator(".says")).to_contain_text("was first with")


def disconnect(watched):
    """A session is disconnected by its button, comes back, and no other is touched."""
    page, name = watched.page, GIVEN["session"]
    watched.view("sessions")
    sessions = GIVEN["sessions"]
    count = page.locator(".count")
    eventually("all sessions", lambda: count.inner_text().startswith(f"{sessions:,}".replace(",", "\u202f")))
    # A slash finds.
    page.keyboard.press("/")
    page.keyboard.type(name)
    row = page.locator(".rows .row:not([hidden])")
    expect(row).to_have_count(1)
    before = all_sessions()
    mine = next(key for key in before if key.endswith(f"->{name}"))
    row.get_by_role("button", name=f"Disconnect {name}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(mine)
    faults(page, "dialog")
    # The safe answer has the focus.
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("Done: 1 session ended")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    now = {}

    def is_back():
        now.update(all_sessions())
        other = now.get(mine, before[mine])
        return other["peer"] != before[mine]["peer"] and other["logged_on"]

    eventually("the session", is_back)
    peer = now[mine]["peer"]
    expect(row.locator(".cell.peer")).to_have_text(peer)
    others = lambda found: {k: (v["peer"], v["since"]) for k, v in found.items() if k != mine}
    assert others(before) == others(now), "another session was touched"
    page.locator("#search").fill("")


# Scrolls there, waits until that is drawn, and says how many rows are in the document.
SCROLL = """async (scroll, at) => {
    const frame = () => new Promise(requestAnimationFrame);
    scroll.scrollTop = at;
    await frame();
    await frame();
    return scroll.querySelectorAll(".rows .row").length;
}"""

# The row that stands last, and how far down the list goes.
LAST = """scroll => {
    const rows = [...scroll.querySelectorAll(".rows .row:not([hidden])")];
    const last = Math.max(...rows.map(row => Number(row.getAttribute("aria-rowindex"))));
    return [last, Number(scroll.getAttribute("aria-rowcount"))];
}"""


def scroll(watched):
    """Few rows are in the document, and the last one is reached. Returns the milliseconds of the
    page's thread that each step took: the processor's, as other programs run beside this one."""
    watched.view("sessions")
    table = watched.page.get_by_role("table", name="Sessions")
    expect(table).to_be_visible()
    eventually("rows", lambda: int(table.get_attribute("aria-rowcount") or 0) > GIVEN["sessions"])
    browser = watched.context.new_cdp_session(watched.page)
    browser.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy():
        metrics = browser.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "TaskDuration") * 1000

    height, screen = table.evaluate("scroll => [scroll.scrollHeight, scroll.clientHeight]")
    down = list(range(0, height - screen, screen * 2 // 3)) + [height - screen]
    steps = []
    for at in down:
        before = busy()
        rows = table.evaluate(SCROLL, at)
        steps.append(round(busy() - before, 1))
        assert rows < 60, rows
    last, count = table.evaluate(LAST)
    assert last == count == GIVEN["sessions"] + 1, (last, count)
    return steps


def as_of(watched):
    """The slider shows the book of the log."""
    page = watched.page
    watched.view(f"instruments?symbol={GIVEN['symbol']}")
    book = page.locator(".book [data-number]")
    expect(page.locator(".levels tbody tr").first).to_be_visible()
    slider = page.get_by_role("slider")
    slider.focus()
    for _ in range(4):
        page.keyboard.press("PageDown")
    eventually("a moment of the log", lambda: "at=" in page.url)
    shown = lambda: book.get_attribute("data-asked") == f"{GIVEN['symbol']} {moment()}"
    moment = lambda: re.search(r"at=([^&]*)", page.url)[1].replace("%3A", ":")
    eventually("its book", shown)
    page.get_by_role("button", name="Previous event").click()
    eventually("the event before", lambda: moment().isdigit() and shown())
    picture(watched, "instrument")
    cells = "rows => rows.map(row => [...row.querySelectorAll('.price, .size')].map(c => c.innerText))"
    return {
        "at": moment(),
        "number": int(book.get_attribute("data-number")),
        "levels": page.locator(".levels tbody tr").evaluate_all(cells),
    }


def signed_in_again(watched):
    """The moment of the log is still shown after the token was refused and entered again."""
    page = watched.page
    book = page.locator(".book [data-number]")
    asked = book.get_attribute("data-asked")
    refuse = lambda _: {"status": 401, "json": {"error": "the test refuses it"}}
    with watched.expecting("401"):
        with answering(page, "status", refuse):
            expect(page.get_by_role("heading", name="Token required")).to_be_visible()
        page.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
    expect(book).to_have_attribute("data-asked", asked)


def another(watched):
    """The book of another instrument, also of one without Symbol(55), is under its own name."""
    page = watched.page
    for one in api("instruments")["instruments"][:2]:
        name = one["symbol"] or one["security_id"]
        watched.view("instruments")
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.locator(".book h2")).to_contain_text(name)
    watched.view(f"instruments?symbol={GIVEN['symbol']}")
    expect(page.locator(".book h2")).to_contain_text(GIVEN["symbol"])


def now_again(watched):
    page = watched.page
    page.get_by_role("button", name="Back to now").click()
    expect(page.locator(".as-of output")).to_contain_text("now, after event")


def tab(watched):
    """The tab leads from a past book to that of now, also where the first one was not chosen."""
    page = watched.page
    watched.view("instruments")
    says = page.locator(".as-of output")
    expect(says).to_contain_text("now, after event")
    page.get_by_role("slider").focus()
    page.keyboard.press("PageDown")
    eventually("a moment of the log", lambda: "at=" in page.url)
    expect(says).to_contain_text("UTC, after event")
    page.get_by_role("link", name="Instruments").click()
    expect(says).to_contain_text("now, after event")


def unknown(watched):
    """An unknown instrument has nothing of the one before, and that one comes back whole."""
    page = watched.page
    title, says = page.locator(".book h2"), page.locator(".book .says")
    known = title.inner_text()
    expect(says).to_contain_text("live")
    with watched.expecting("NONE-SUCH"):
        watched.view("instruments?symbol=NONE-SUCH")
        expect(page.locator(".book")).to_contain_text("NONE-SUCH is unknown")
        expect(title).to_have_text("NONE-SUCH")
        expect(says).to_be_empty()
        expect(page.locator(".levels")).not_to_be_visible()
        watched.view(f"instruments?symbol={GIVEN['symbol']}")
        expect(title).to_have_text(known)
        expect(says).to_contain_text("live")


def told(watched):
    """Stages have figures, and notices tell of the session."""
    page = watched.page
    watched.view("stages")
    if api("stages"):
        expect(page.locator(".stages tbody tr").first).to_be_visible()
    watched.view("notices")
    # Those of the stream come before others that are asked for, and hide none of them.
    count = page.locator(".count")
    all_of_them = lambda: number(re.match(r"[\d\s]+", count.inner_text())[0])
    eventually("all notices", lambda: all_of_them() == min(api("notices")["total"], 1000))
    page.locator("#search").fill(GIVEN["session"])
    expect(page.locator(".row.notice:not([hidden]) .said").first).to_contain_text(GIVEN["session"])


def figures(watched):
    """What goes away takes its figures along, and the sentence of a figure is of now."""
    page = watched.page
    watched.view("overview")
    mortal = ["slowest", "log", "lag", "decoded", "gaps", "live"]
    for figure in mortal:
        expect(page.locator(f"#{figure}")).to_be_visible()
    shown = lambda: page.locator(".figures .value").evaluate_all("all => all.map(one => one.id)")
    before = shown()
    reloaded = lambda _: {"json": {**api("status"), "history": False, "version": "99.9"}}
    with (
        answering(page, "sessions", lambda _: {"json": {"sessions": [], "next": None}}),
        answering(page, "lines", lambda _: {"json": {"feeds": []}}),
        answering(page, "status", reloaded),
        answering(page, "counters", lambda _: {"json": {"published": 1, "samples": 2}}),
    ):
        for figure in mortal:
            expect(page.locator(f"#{figure}")).to_have_count(0)
        expect(page.locator("#uptime + .explained")).to_contain_text("fanfare 99.9")
        expect(page.locator("#dds-published")).to_have_text("1")
        expect(page.locator("#dds-samples")).to_have_text("2")
    eventually("the figures of before, in their order", lambda: shown() == before)


def twins(watched):
    """Of several instruments with one symbol, and even one ID, each has its own book."""
    page = watched.page
    [one] = api("instruments?limit=1")["instruments"]
    [own] = api(f"books?symbol={one['security_id']}&feed={one['feed']}")["books"]
    names = [(900_001, "T-1"), (900_002, "T-2"), (900_003, "T-2")]
    names = [{"number": number, "symbol": "TWIN", "security_id": id} for number, id in names]
    listed = {"total": 3, "next": None, "instruments": [{**one, **name} for name in names]}

    def books(asked):
        bid = lambda name: {"bids": [{"price": f"{name['number']}.5", "size": 1}]}
        wanted = asked.get("security_id")
        found = [name for name in names if wanted in (None, name["security_id"])]
        found = [{**own, **name, **bid(name)} for name in found]
        return {"json": {"number": 1, "time": None, "live": True, "books": found}}

    links, book = page.locator(".row.instrument:not([hidden]) a"), page.locator(".book")
    shown = book.locator(".price.bid").first
    with (
        watched.expecting("TWIN"),
        answering(page, "instruments", lambda _: {"json": listed}),
        answering(page, "books", books),
    ):
        watched.view("instruments")
        expect(links).to_have_text([f"TWIN {name['security_id']}" for name in names])
        for at in (2, 1, 0):
            links.nth(at).click()
            expect(shown).to_have_text(f"{names[at]['number']}.5")
            expect(book).not_to_contain_text("This is the first of")
        watched.view("instruments?symbol=TWIN")
        expect(book).to_contain_text("This is the first of 3 instruments of this name")
        watched.view("overview")


def refused(watched):
    """What the gateway refuses to tell is not said to be absent."""
    page, content = watched.page, watched.page.locator("#content")
    refuse = lambda _: {"status": 409, "json": {"error": "the test refuses it"}}
    with watched.expecting("409"), answering(page, "log|stages|lines|sessions", refuse):
        for view, part in (("lines", "lines"), ("stages", "stages"), ("instruments", "log")):
            watched.view(view)
            expect(content).to_contain_text(f"`{part}` is not available: the test refuses it.")
        expect(page.locator(".row.instrument:not([hidden]) a").first).to_be_visible()
        watched.view("sessions")
        expect(content).to_contain_text("The sessions are not available: the test refuses it.")
    expect(page.locator(".count")).to_contain_text("sessions")


def latest(watched):
    """A notice that comes behind a later one is shown below it."""
    page = watched.page
    late, later = (
        {"id": id, "time": "2026-11-23T10:00:00Z", "trouble": False, "kind": "test", "text": text}
        for id, text in ((10**9, "the late one"), (10**9 + 1, "the later one"))
    )
    stream = f"event: notice\ndata: {json.dumps(later)}\n\n"
    at_once = lambda _: {"content_type": "text/event-stream", "body": stream}
    behind = lambda _: {"json": {"total": 1, "next": None, "notices": [late]}}
    shown = page.locator(".notices.short li")
    watched.view("overview")
    with answering(page, "changes", at_once):
        page.reload()
        expect(shown.first).to_contain_text("the later one")
        with answering(page, "notices", behind):
            expect(shown.nth(1)).to_contain_text("the late one")


def gone(watched):
    """A gateway that cannot be reached is said to be gone, and is found again."""
    page = watched.page
    watched.view("overview")
    with watched.expecting("ERR_INTERNET_DISCONNECTED"):
        watched.context.set_offline(True)
        expect(page.locator(".bar-note")).to_contain_text("does not answer")
        faults(page, "gone")
        picture(watched, "gone", keep=False)
        watched.context.set_offline(False)
        expect(page.locator(".link")).to_have_text("live")
    expect(page.locator(".bar-note")).to_be_empty()


def faults(page, where):
    """No serious fault, says axe."""
    found = Axe().run(page).response["violations"]
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    about = [(one["id"], [node["html"] for node in one["nodes"][:3]]) for one in grave]
    assert not grave, f"{where}: {about}"


def accessible(watched, where):
    """Each view, at its width."""
    for view in VIEWS:
        watched.view(view)
        watched.page.wait_for_timeout(300)
        faults(watched.page, f"{view} {where}")
        size = watched.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert size[0] <= size[1], f"{view} {where} is too wide: {size}"


def picture(watched, name, keep=True):
    if GIVEN["pictures"] and keep:
        watched.page.wait_for_timeout(1500)
        watched.page.screenshot(path=f"{GIVEN['pictures']}/console-{name}.png")


def pictures(watched):
    for view in ("lines", "sessions"):
        watched.view(view)
        picture(watched, view)


def remember(watched):
    """Other pages of the same reader begin with the token."""
    watched.context.add_init_script(f"sessionStorage.setItem('fanfare.token', '{TOKEN}')")


def main():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        wide = Watched(browser, viewport={"width": 1280, "height": 800}, color_scheme="light")
        enter(wide)
        overview(wide)
        lines(wide)
        disconnect(wide)
        steps = scroll(wide)
        seen = as_of(wide)
        signed_in_again(wide)
        now_again(wide)
        another(wide)
        unknown(wide)
        tab(wide)
        told(wide)
        pictures(wide)
        accessible(wide, "wide, light")
        gone(wide)
        wide.view("overview")
        picture(wide, "overview")
        wide.close()
        odd = Watched(browser, viewport={"width": 1280, "height": 800})
        remember(odd)
        figures(odd)
        twins(odd)
        refused(odd)
        latest(odd)
        odd.close()
        narrow = Watched(browser, viewport={"width": 360, "height": 740}, color_scheme="dark")
        remember(narrow)
        accessible(narrow, "narrow, dark")
        narrow.close()
        browser.close()
    print(json.dumps({"as_of": seen, "steps_ms": steps}))


main()
