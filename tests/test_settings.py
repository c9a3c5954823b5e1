"""Environment variables: what they accept, and one clear error for the rest, wherever they are read."""

from __future__ import annotations

import pytest
import tilelang
from simple_kernels import vector_add

from tilelang_pto import ConfigurationError, settings
from tilelang_pto.lowering import emit_function

ON = ["1", "true", "yes", "on", "TRUE", " On "]
OFF = ["0", "false", "no", "off", "False", " NO "]


@pytest.mark.parametrize(("variable", "read"), [("TILELANG_PTO_CHECK", settings.checking), ("TILELANG_PTO_DEBUG", settings.debugging)])
def test_switches(monkeypatch, variable, read):
    for text in ON:
        monkeypatch.setenv(variable, text)
        assert read()
    for text in OFF:
        monkeypatch.setenv(variable, text)
        assert not read()
    for text in ("2", "ja", "-", "truee", "0 1"):
        monkeypatch.setenv(variable, text)
        with pytest.raises(ConfigurationError, match=f"{variable}={text} is neither on nor off"):
            read()
    for text in ("", " "):
        monkeypatch.setenv(variable, text)
        assert read() == (variable == "TILELANG_PTO_CHECK")


@pytest.mark.parametrize(("text", "count"), [("", 0), ("0", 0), ("1", 1), (" 7 ", 7), ("4096", 4096)])
def test_threads(monkeypatch, text, count):
    monkeypatch.setenv("TILELANG_PTO_THREADS", text)
    assert settings.host_threads() == count


@pytest.mark.parametrize("text", ["many", "-1", "+1", "4097", "1.5", "0x2", "1_0", "\u0663"])
def test_bad_threads(monkeypatch, text):
    monkeypatch.setenv("TILELANG_PTO_THREADS", text)
    with pytest.raises(ConfigurationError, match="is not a number of threads") as caught:
        settings.host_threads()
    assert "1 to 4096" in caught.value.advice


@pytest.mark.parametrize("text", ["ascending", "blocked", "reverse", "random:0", " random:123456789012345678 "])
def test_orders_of_summation(monkeypatch, text):
    monkeypatch.setenv("TILELANG_PTO_MAD_ORDER", text)
    assert settings.mad_order() == text.strip()


@pytest.mark.parametrize("text", ["random", "random:", "random:x", "random:1234567890123456789", "Reverse", "up"])
def test_bad_orders_of_summation(monkeypatch, text):
    monkeypatch.setenv("TILELANG_PTO_MAD_ORDER", text)
    with pytest.raises(ConfigurationError, match="is not an order of summation"):
        settings.mad_order()


@pytest.mark.parametrize(("text", "seed"), [("", 0), ("0", 0), (" 7 ", 7)])
def test_seeds(monkeypatch, text, seed):
    monkeypatch.setenv("TILELANG_PTO_SEED", text)
    assert settings.seed() == seed


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "1234567890123456789"])
def test_bad_seeds(monkeypatch, text):
    monkeypatch.setenv("TILELANG_PTO_SEED", text)
    with pytest.raises(ConfigurationError, match="is not a seed"):
        settings.seed()


@pytest.mark.parametrize(("text", "policy"), [("", "late"), (" eager ", "eager"), ("random:0", "random:0"), ("random:17", "random:17")])
def test_policies(monkeypatch, text, policy):
    monkeypatch.setenv("TILELANG_PTO_SIM_POLICY", text)
    assert settings.sim_policy() == policy


@pytest.mark.parametrize("text", ["soon", "random", "random:", "random:x", "random:-1", "random:" + "9" * 19])
def test_bad_policies(monkeypatch, text):
    monkeypatch.setenv("TILELANG_PTO_SIM_POLICY", text)
    with pytest.raises(ConfigurationError, match="is not a policy"):
        settings.sim_policy()


@pytest.mark.parametrize(
    ("text", "seed"), [("", None), (" exact ", None), ("perturb:0", 0), (" perturb:42", 42), ("perturb:" + "9" * 18, 10**18 - 1)]
)
def test_perturbation(monkeypatch, text, seed):
    monkeypatch.setenv("TILELANG_PTO_ULP", text)
    assert settings.perturbation() == seed


BAD_PERTURBATIONS = [
    "perturb",
    "perturb:",
    "perturb:-1",
    "perturb:x",
    "perturb: 1",
    "exact:",
    "exact:1",
    "1",
    "perturb:" + "9" * 19,
    "Exact",
]


@pytest.mark.parametrize("text", BAD_PERTURBATIONS)
def test_bad_perturbation(monkeypatch, text):
    monkeypatch.setenv("TILELANG_PTO_ULP", text)
    with pytest.raises(ConfigurationError, match=f"TILELANG_PTO_ULP={text} is not understood") as caught:
        settings.perturbation()
    assert "perturb:SEED" in caught.value.advice


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("TILELANG_PTO_CHECK", "maybe"),
        ("TILELANG_PTO_DEBUG", "maybe"),
        ("TILELANG_PTO_THREADS", "x"),
        ("TILELANG_PTO_ULP", "x"),
        ("TILELANG_PTO_SEED", "x"),
        ("TILELANG_PTO_SIM_CHECK", "x"),
        ("TILELANG_PTO_SIM_POLICY", "x"),
        ("TILELANG_PTO_MAD_ORDER", "x"),
    ],
)
def test_bad_values_stop_a_build(cache_dir, monkeypatch, variable, text):
    monkeypatch.setenv(variable, text)
    with pytest.raises(ConfigurationError, match=f"{variable}={text}"):
        tilelang.compile(vector_add(cores=11), target="pto")


@pytest.mark.parametrize("variable", ["TILELANG_PTO_CHECK", "TILELANG_PTO_DEBUG"])
def test_bad_values_stop_emission(monkeypatch, variable):
    monkeypatch.setenv(variable, "maybe")
    with pytest.raises(ConfigurationError, match=f"{variable}=maybe"):
        emit_function(vector_add())
