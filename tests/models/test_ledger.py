"""Running totals of calls, tokens and money."""

import pytest
from loopback import request

from palate.errors import ScriptError
from palate.models.ledger import Counted, Ledger
from palate.models.scripted import ScriptedModel
from palate.models.spec import Price
from palate.types import Usage
from worlds import Answering

PRICE = Price(input=2, output=10, cached_input=0.5)


def test_totals_are_kept_by_role_and_model():
    ledger = Ledger()
    ledger.answered("judge", "a", Usage(1000, 100, 400))
    ledger.answered("judge", "a", Usage(10, 1, 0))
    ledger.answered("candidate", "a", Usage(5, 5, 0))
    ledger.of("judge", "a").retries += 2
    assert ledger.of("judge", "a").usage == Usage(1010, 101, 400)
    assert ledger.of("judge", "a").retries == 2
    assert ledger.of("candidate", "a").calls == 1
    assert (ledger.calls, ledger.usage) == (3, Usage(1015, 106, 400))


def test_money_is_exact_and_complete_where_all_prices_are_known():
    ledger = Ledger()
    ledger.answered("judge", "a", Usage(1000, 100, 400))
    assert ledger.money({"a": PRICE}) == (0.0024, True)


def test_money_of_an_unknown_price_is_left_out_and_said():
    ledger = Ledger()
    ledger.answered("judge", "a", Usage(1000, 100, 400))
    ledger.answered("candidate", "b", Usage(1000, 100, 400))
    assert ledger.money({"a": PRICE}) == (0.0024, False)
    assert ledger.of("candidate", "b").cost(None) is None


def test_a_call_without_a_count_of_tokens_has_no_known_cost():
    ledger = Ledger()
    ledger.answered("judge", "a", Usage())
    assert ledger.of("judge", "a").cost(PRICE) is None
    assert ledger.of("judge", "a").cost(Price(input=0, output=0)) == 0


async def test_a_counted_model_counts_answers_and_failures():
    ledger = Ledger()
    await Counted(Answering(lambda r: "Hi.", name="f"), ledger).complete(request())
    with pytest.raises(ScriptError):
        await Counted(ScriptedModel.from_entries([], name="s"), ledger).complete(request())
    assert ledger.of("candidate", "f").calls == 1
    assert ledger.of("candidate", "s").failures == 1
