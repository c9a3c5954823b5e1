"""The pytest plugin, in runs of its own."""

from __future__ import annotations

import pytest
from report_data import FakeEngine

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "tilelang_pto.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")
# In a process of its own, such as a worker of pytest-xdist, the engine is put in place by this.
CONFTEST = """
import pytest, sys
sys.path[:0] = {path!r}
from report_data import FakeEngine

ENGINE = FakeEngine(pytest.MonkeyPatch())
"""
HEAD = """
import pytest
from report_data import FakeEngine


def launch(*arguments):
    FakeEngine.current.launch(*arguments)
"""


@pytest.fixture
def engine(monkeypatch) -> FakeEngine:
    return FakeEngine(monkeypatch)


@pytest.fixture
def run(pytester, engine):
    """A function that runs pytest on a file with the given tests."""

    def runner(body: str, *arguments: str):
        pytester.makepyfile(test_it=HEAD + body)
        result = pytester.runpytest_inprocess(*PLUGIN, *arguments)
        assert engine.stack == []
        return result

    return runner


def test_clean_tests_pass(run):
    result = run("def test_a(): launch(); launch()\ndef test_b(): launch()\ndef test_c(): pass")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["tilelang-pto: 3 launches checked (full, policy late)"])


def test_a_finding_fails_the_test_that_ran_the_kernel(run):
    result = run("def test_a(): launch()\ndef test_b(): launch('bad', 'findings')\ndef test_c(): launch()")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ test_b _*",
            "bad  (2 blocks; check full, policy late)",
            "    race, write after read: no V->MTE2 ordering*",
            "      first   scale_kernel.pto.py:17: vlds on pipe V of block 0 reads, execution 1",
            "              pto.vsts(*",
            "tilelang-pto: 3 launches checked (full, policy late), 5 findings in 1 test",
        ]
    )
    assert "pytest_plugin.py" not in result.stdout.str()


def test_a_test_that_fails_by_itself_shows_its_own_failure_and_the_findings(run):
    result = run("def test_a():\n    launch('bad', 'findings')\n    assert 1 == 2")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*assert 1 == 2", "*- Captured tilelang-pto call -*", "    race, write after read*"])


def test_a_kernel_of_a_fixture_fails_the_phase_it_ran_in(run):
    body = """
@pytest.fixture
def before():
    launch('bad', 'findings')

@pytest.fixture
def after():
    yield
    launch('bad', 'findings')

def test_a(before): pass
def test_b(after): pass
def test_c(): pass
"""
    result = run(body)
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["*ERROR at setup of test_a*", "*ERROR at teardown of test_b*", "*10 findings in 2 tests*"])


def test_marks_work_as_ever(run):
    body = """
@pytest.mark.xfail
def test_a(): launch('bad', 'findings')

def test_b():
    launch()
    pytest.skip('not here')
"""
    run(body).assert_outcomes(xfailed=1, skipped=1)


def test_a_session_inside_a_test_keeps_its_launches(run):
    body = """
from tilelang_pto.errors import RaceError
from tilelang_pto.sim import session

def test_a():
    with session(race='report') as s:
        launch('bad', 'findings')
    with pytest.raises(RaceError):
        s.report.raise_if_findings()

def test_in_another_thread():
    from threading import Thread
    found = []
    def work():
        with session(race='report') as s:
            launch()
        found.append(len(s.report.kernels))
    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert found == [1]
"""
    run(body).assert_outcomes(passed=2)


def test_a_session_of_a_fixture_lives_on_over_tests(run):
    body = """
from tilelang_pto.sim import session

@pytest.fixture(scope='module')
def wide():
    with session(race='report', check='bounds') as s:
        yield s
    assert [kernel.kernel for kernel in s.report.kernels] == ['a', 'b']

def test_a(wide):
    launch('a')
    assert FakeEngine.current.stack[-1][0]['check'] == 'bounds'

def test_b(wide):
    launch('b')
    assert len(wide.report.kernels) == 2
"""
    run(body).assert_outcomes(passed=2)


def test_options(run):
    body = """
def test_a():
    options = FakeEngine.current.stack[-1][0]
    assert (options['check'], options['policy'], options['race']) == ('bounds', 'random:3', 'report')
"""
    run(body, "--pto-check=bounds", "--pto-policy=random:3").assert_outcomes(passed=1)


def test_a_bad_policy(run):
    result = run("def test_a(): pass", "--pto-policy=soon")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: option policy='soon' of a simulation session is not understood", "  instead: one of late*"])


def test_pages(run, pytester):
    body = """
@pytest.mark.parametrize('x', ['a/b', 'a b', 'x' * 300])
def test_a(x): launch('bad', 'findings')
def test_b(): launch()
"""
    result = run(body, "--pto-report=pages")
    result.assert_outcomes(passed=1, failed=3)
    pages = sorted((pytester.path / "pages").iterdir())
    assert len(pages) == 3
    for page in pages:
        assert page.name.endswith("-call.html") and len(page.name) < 160
        assert "<title>test_it.py::test_a[" in page.read_text()
    result.stdout.fnmatch_lines([f"report: {pytester.path}/pages/*.html", f"*15 findings in 3 tests, pages in {pytester.path}/pages"])


def test_no_directory_is_made_for_nothing(run, pytester):
    run("def test_b(): launch()", "--pto-report=pages").assert_outcomes(passed=1)
    assert not (pytester.path / "pages").exists()


def test_with_xdist(pytester):
    import sys

    pytester.makeconftest(CONFTEST.format(path=[path for path in sys.path if path]))
    bodies = [f"def test_{number}(): launch('bad', 'findings' if {number} % 3 == 0 else 'clean')" for number in range(6)]
    pytester.makepyfile(test_it=HEAD + "\n".join(bodies))
    result = pytester.runpytest_subprocess(*PLUGIN, "-n", "1", "--pto-report=pages", "--pto-policy=random:3")
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(["*6 launches checked (full, policy random:3), 10 findings in 2 tests, pages in *"])
    assert len(list((pytester.path / "pages").iterdir())) == 2


def test_without_the_plugin_nothing_is_checked(pytester, engine):
    pytester.makepyfile(test_it=HEAD + "def test_a(): assert FakeEngine.current.stack == []")
    pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:hypothesispytest").assert_outcomes(passed=1)


def test_kernels_on_the_engine(pytester):
    pytester.makepyfile(test_it="import sync_kernels as k\ndef test_a(): k.run(k.CLEAN)\ndef test_b(): k.run(k.RACY)")
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*race, write after read: no V->MTE2*", "tilelang-pto: 2 launches checked*1 finding in 1 test"])
