"""The page as a person uses it, in headless Chromium."""

from __future__ import annotations

import dataclasses

import pytest
from report_data import report

from tilelang_pto.sim import SessionReport
from tilelang_pto.sim.report import Event, Timeline
from tilelang_pto.sim.report.page import write_page

pytestmark = pytest.mark.browser

TIMED = report("timed").kernels[0]
ALL = SessionReport((*report("clean").kernels, *report("timed").kernels, *report("findings").kernels))


@pytest.fixture
def page(tmp_path, open_page):
    """The page of all reports; the first launch with a finding is shown, which is the timed one."""
    write_page(ALL, tmp_path / "page.html")
    return open_page(tmp_path / "page.html")


def view(page) -> tuple[float, float]:
    section = page.locator("#timeline")
    return float(section.get_attribute("data-from")), float(section.get_attribute("data-to"))


def selected(page) -> list[str]:
    return page.locator("#source tr.selected").evaluate_all("rows => rows.map(row => row.id)")


def colours(page, canvas: str) -> int:
    """How many colours a canvas shows."""
    return page.evaluate(
        """name => { const c = document.querySelector(name); const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        return new Set(new Uint32Array(d.buffer)).size; }""",
        canvas,
    )


def until(page, condition: str) -> None:
    """Wait for a condition; Playwright's own way is forbidden by the page's policy."""
    for _ in range(100):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    pytest.fail(f"never: {condition}")


def in_canvas(page, canvas: str, cycle: float, y: float) -> tuple[float, float]:
    """Where a cycle is on the screen, ``y`` pixels below the upper edge of a canvas."""
    page.locator(canvas).scroll_into_view_if_needed()
    box = page.locator(canvas).bounding_box()
    start, end = view(page)
    return box["x"] + 148 + (cycle - start) / (end - start) * (box["width"] - 148), box["y"] + y


def row_of(block: int, pipe: str) -> float:
    return 22 + (block * 4 + ("S", "MTE2", "V", "MTE3").index(pipe)) * 18 + 9


def test_what_is_shown_first(page):
    assert page.title() == "Simulator report"
    assert page.locator("#totals").inner_text() == "4 launches, 6 findings"
    assert page.locator("#launches button[aria-current=true]").inner_text().startswith("2. scale_kernel, 2 blocks, 1.91 µs")
    overview = page.locator("#overview").inner_text()
    for text in ("3,148", "1.91 µs", "32 KiB", "Bound by: MTE2", "34.4 GB/s of 1.6 TB/s (2.1 %)", "MTE2 line 11: 63.5 %", "Note: "):
        assert text in overview
    assert colours(page, "#timeline canvas") > 5
    assert colours(page, "#memory canvas") > 5


def test_a_finding_leads_to_both_lines(page):
    places = page.locator("#findings .place")
    assert places.count() == 2
    assert "line 17, vlds on pipe V of block 0, execution 1" in places.nth(0).inner_text()
    places.nth(0).click()
    assert selected(page) == ["line-17"]
    places.nth(1).click()
    assert selected(page) == ["line-11"]
    assert page.locator("#line-11").get_attribute("class") == "found selected"
    text = page.locator("#findings").inner_text()
    assert "race, write after read: no V->MTE2 ordering between them (found 6 times)\nUB bytes 0 to 4095\n" in text.replace("\n\n", "\n")


def test_hot_lines_stand_beside_the_text(page):
    assert page.locator("#line-11 td").all_inner_texts()[:3] == ["11", "4,000", "47.1 %"]
    assert page.locator("#line-8 td").all_inner_texts()[:3] == ["8", "", ""]
    heats = [page.locator(f"#line-{line} td.code").get_attribute("style") for line in (11, 14, 8)]
    assert "background" in heats[0] and heats[0] != heats[1] and not heats[2]
    page.locator("#source .hot button").nth(1).click()
    assert selected(page) == ["line-20"]


def test_zoom_and_move(page):
    assert view(page) == (0, 3148)
    x, y = in_canvas(page, "#timeline canvas", 1000, row_of(0, "V"))
    page.mouse.move(x, y)
    page.mouse.wheel(0, -300)
    until(page, "document.querySelector('#timeline').dataset.from > 0")
    start, end = view(page)
    assert end - start == pytest.approx(3148 / 2.718, rel=0.01)
    assert (1000 - start) / (end - start) == pytest.approx(1000 / 3148, abs=0.01)  # what is under the mouse stays there
    page.mouse.down()
    page.mouse.move(x - 60, y, steps=3)
    page.mouse.up()
    moved = view(page)
    assert moved[0] > start
    assert moved[1] - moved[0] == pytest.approx(end - start)
    assert selected(page) == []  # moving is no click
    page.get_by_title("show all").click()
    assert view(page) == (0, 3148)
    page.locator("#timeline canvas").focus()
    page.keyboard.press("+")
    assert view(page) == (787, 2361)
    page.keyboard.press("ArrowRight")
    assert view(page)[0] > 787
    page.keyboard.press("0")
    assert view(page) == (0, 3148)
    for _ in range(40):
        page.keyboard.press("+")
    assert view(page)[1] - view(page)[0] == 4


def test_the_memory_map_shows_the_same_time(page):
    before = page.evaluate("document.querySelector('#memory canvas').toDataURL()")
    page.get_by_title("zoom in").click()
    assert page.evaluate("document.querySelector('#memory canvas').toDataURL()") != before
    x, y = in_canvas(page, "#memory canvas", 1100, 40)
    page.mouse.move(x, y)
    page.mouse.wheel(0, -200)
    until(page, "document.querySelector('#timeline').dataset.from > 787")


def test_pointing_tells_and_clicking_selects(page):
    x, y = in_canvas(page, "#timeline canvas", 200, row_of(0, "MTE2"))
    page.mouse.move(x, y)
    tip = page.locator("#tip")
    for text in ("mte_gm_ub, line 11", "block 0, pipe MTE2", "cycles 8 to 508: 500 (303 ns)"):
        assert text.replace("303 ns", "0.303 µs") in tip.inner_text()
    page.mouse.click(x, y)
    assert selected(page) == ["line-11"]
    page.mouse.move(*in_canvas(page, "#timeline canvas", 200, row_of(0, "V")))
    assert tip.inner_text().startswith("waits in wait_flag, line 13")
    page.mouse.move(*in_canvas(page, "#timeline canvas", 3140, row_of(0, "MTE2")))
    assert not tip.is_visible()
    x, y = in_canvas(page, "#memory canvas", 600, 100)
    page.mouse.move(x, y)
    assert "line 17 writes bytes 4096 to 8191" in tip.inner_text()
    page.mouse.click(x, y)
    assert selected(page) == ["line-17"]


def test_names_of_buffers_in_the_memory_map(tmp_path, open_page):
    named = dataclasses.replace(TIMED, text=TIMED.text + "\n    # UB view doubled: bytes 4096 to 8191\n")
    pictures = []
    for kernel in (TIMED, named):
        write_page(SessionReport((kernel,)), tmp_path / "page.html")
        page = open_page(tmp_path / "page.html")
        pictures.append(page.evaluate("document.querySelector('#memory canvas').toDataURL()"))
    assert pictures[0] != pictures[1]
    page.mouse.move(*in_canvas(page, "#memory canvas", 600, 100))
    assert "line 17 writes bytes 4096 to 8191 (doubled)" in page.locator("#tip").inner_text()


def test_a_choice_of_blocks_and_memories(page):
    choice = page.get_by_title("which blocks")
    assert choice.locator("option").all_inner_texts() == ["all 2 blocks", "block 0", "block 1"]
    height = page.locator("#timeline canvas").bounding_box()["height"]
    choice.select_option("1")
    assert page.locator("#timeline canvas").bounding_box()["height"] == height - 4 * 18
    page.mouse.move(*in_canvas(page, "#timeline canvas", 300, row_of(0, "MTE2")))
    assert "block 1, pipe MTE2" in page.locator("#tip").inner_text()
    before = page.evaluate("document.querySelector('#memory canvas').toDataURL()")
    page.get_by_title("which memory").select_option("1")
    assert page.evaluate("document.querySelector('#memory canvas').toDataURL()") != before


def test_other_launches(page):
    launches = page.locator("#launches button")
    assert launches.count() == 4
    assert launches.nth(2).locator(".badge").inner_text() == "5"
    launches.nth(2).click()
    findings = page.locator("#findings").inner_text()
    for text in ("GM (argument c) bytes 128 to 255", "uninitialised", "flag MTE3->V id 0 is still set"):
        assert text in findings
    assert not page.locator("#timeline").is_visible()
    assert not page.locator("#memory").is_visible()
    launches.nth(3).click()
    assert "the kernel waits for a flag that is never set" in page.locator("#findings").inner_text()
    launches.nth(0).click()
    assert "none (check full, policy late)" in page.locator("#findings").inner_text()
    assert "65,536\ndma bytes" in page.locator("#overview").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dark_and_light(tmp_path, open_page, scheme):
    write_page(ALL, tmp_path / "page.html")
    page = open_page(tmp_path / "page.html", color_scheme=scheme)

    def brightness() -> float:
        text = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in text[4:-1].split(",")) / 3

    assert (brightness() > 128) == (scheme == "light")
    page.locator("#theme").click()
    assert (brightness() > 128) == (scheme == "dark")
    page.emulate_media(color_scheme="dark" if scheme == "light" else "light")
    assert (brightness() > 128) == (scheme == "dark")


def test_a_large_timeline_stays_usable(tmp_path, open_page):
    """400 rows of 500 events: rows scroll, the wheel scrolls them, and Ctrl with the wheel zooms."""
    pipes = ("S", "MTE2", "V", "MTE3")
    events = tuple(
        Event(block, "", pipe, 11, "mte_gm_ub", 6.0 * n, 6.0 * n + 5, "run") for block in range(100) for pipe in pipes for n in range(500)
    )
    write_page(SessionReport((dataclasses.replace(TIMED, timeline=Timeline(False, events)),)), tmp_path / "page.html")
    page = open_page(tmp_path / "page.html")
    scroll = page.locator("#timeline .scroll")
    assert scroll.bounding_box()["height"] <= 430
    page.mouse.move(*in_canvas(page, "#timeline canvas", 1000, 100))
    page.mouse.wheel(0, 900)
    until(page, "document.querySelector('#timeline .scroll').scrollTop > 500")
    assert view(page) == (0, 3148)
    page.mouse.move(*in_canvas(page, "#timeline canvas", 1000, 100))
    assert "block 1" in page.locator("#tip").inner_text()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    until(page, "document.querySelector('#timeline').dataset.from > 0")
    drawing = page.evaluate("() => { const t = performance.now(); page.panels[0].draw(); return performance.now() - t; }")
    assert drawing < 1000


def test_hostile_names_do_nothing(tmp_path, open_page):
    bad = "<img src=x onerror=fault()></script><script>fault()</script>"
    finding = dataclasses.replace(TIMED.findings[0], message=bad, tensor=bad, missing=bad)
    kernel = dataclasses.replace(TIMED, kernel=bad, file=bad, text=f"{bad}\n" * 30, notes=(bad,), error=bad, findings=(finding,))
    write_page(SessionReport((kernel, kernel)), tmp_path / "page.html", title=bad)
    page = open_page(tmp_path / "page.html")
    assert page.title() == bad
    assert bad in page.locator("#findings").inner_text()
    assert page.locator("img").count() == 0


def test_no_launches(tmp_path, open_page):
    write_page(SessionReport(), tmp_path / "page.html")
    page = open_page(tmp_path / "page.html")
    assert page.locator("#overview").inner_text() == "No kernel was launched."
