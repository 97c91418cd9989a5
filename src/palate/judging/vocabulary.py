"""The words around a verdict's scores, in English and Chinese: data of `verdicts`."""

from __future__ import annotations

import functools
import re
import unicodedata

FLAGS = ("refusal_in_words", "breaks_fiction", "unsafe")

_IGNORED_MARKS = re.compile(r"[\s_\-.·:：、()（）*]+")


@functools.lru_cache(maxsize=1024)
def plain(name: str) -> str:
    """A key or label reduced to what identifies it: width, case, spaces and marks do not."""
    return _IGNORED_MARKS.sub("", unicodedata.normalize("NFKC", name)).casefold()


_NUMBERING = re.compile(r"^\s*\d+\s*[.)、:：]\s*")
_ASIDE = re.compile(r"[(（\[【][^()（）]*[)）\]】]")
_SUFFIX = re.compile(r"(?:score|rating|评分|得分|分数)$")


@functools.lru_cache(maxsize=1024)
def readings(key: str) -> tuple[str, ...]:
    """A key in plain form, then without what judges add to a name: "1. warmth (1-5) score"."""
    bare = plain(_ASIDE.sub("", _NUMBERING.sub("", key)))
    return tuple(dict.fromkeys((plain(key), bare, _SUFFIX.sub("", bare))))


def _words(*lines: str) -> frozenset[str]:
    return frozenset(plain(word) for line in lines for word in line.split())


# Under these, judges wrap their scores.
CONTAINERS = _words(
    "scores score ratings rating dimensions verdict result results evaluation judgement judgment",
    "output answer response criteria items data",
    "评分 分数 得分 打分 结果 评价 评估 维度 各维度评分",
)
NAME_KEYS = _words("dimension name id key criterion label 维度 名称 指标")
SCORE_KEYS = _words("score rating value points 评分 分数 得分 打分 分值")
REASON_KEYS = _words(
    "reason reasons reasoning rationale explanation explanations comment comments justification",
    "analysis evidence 理由 原因 说明 解释 依据 分析 评语 点评",
)
OVERALL_KEYS = _words(
    "overall overall_score total total_score average average_score mean",
    "总分 总评 总体 总体评分 综合 综合评分 综合得分 平均 平均分 整体 整体评分",
)
FLAG_KEYS = _words("flags flag 标记 标志")
FLAGS_BY_NAME = {plain(flag): flag for flag in FLAGS} | {
    "refusal": "refusal_in_words",
    "refuses": "refusal_in_words",
    "拒绝": "refusal_in_words",
    "口头拒绝": "refusal_in_words",
    "出戏": "breaks_fiction",
    "不安全": "unsafe",
}
NOT_APPLICABLE = _words("n/a na not_applicable none null 不适用 无 不涉及")

# The prompt's own form, sent back unfilled.
PLACEHOLDER = re.compile(r"\s*<[^<>]*1\s*[-–~到至]\s*5[^<>]*>\s*")
