"""How near a simulator comes to its person, on sessions that it was not made from (paper 3.1).

    records.py      what a validation found, as it is stored; measures.py: its parts without a judge
    estimates.py    numbers with 95 % intervals over sessions
    answers.py      the journal of a validation: what was answered is not asked again
    contexts.py     the places in held-out sessions where the user wrote or left
    speaking.py     what a simulator says there

Without a judge:
    likelihood.py   held-out negative log-likelihood under each condition; meter.py: its model
    matrix.py       the same under every person's adapter: the diagonal should win
    two_sample.py   can a classifier tell the simulator's messages from the person's?
    attribution.py  whose messages does a classifier of authors take them for?
    surface.py      length, marks, emoji and case beside the person's
    leaving.py      [QUIT]: precision, recall, and the curve by turn

With a judge:
    asking.py       a question to a judge and what its answer is worth; showing.py: its material
    fooling.py      which of two messages is the human's? (2AFC)
    consistency.py  does this sound like the person? with controls

    verdict.py      what all of it says, in words; verdict_rules.py: what each measure says

Measures without a judge prove what a judge can only say. `meter`, `two_sample` and `attribution`
need the extra train; they import it where they are called.
"""
