"""What the pages say, in English and Chinese; one entry for each sentence."""

from __future__ import annotations

from palate.language import Language

_WORDS: dict[str, tuple[str, str]] = {
    "title": ("Chat and rate", "聊天与评分"),
    "signed_in": ("You are here as", "你的身份"),
    "other_language": ("中文", "English"),
    "home": ("All chats", "全部聊天"),
    "skip": ("Skip to the content", "跳到正文"),
    "needs_script": (
        "This page needs JavaScript: replies are shown while they are written.",
        "本页需要 JavaScript：回复会边写边显示。",
    ),
    # home
    "welcome": (
        "Pick a character, talk to it as you like, and rate every reply from 1 to 5: how much "
        "did you, yourself, like it? There is no right answer. Leave when you would leave.",
        "选一个角色，随意聊天，并给每条回复打 1 到 5 分：你自己有多喜欢它？"
        "没有标准答案。想走的时候就离开。",
    ),
    "to_rate": ("Chats to rate", "待评分的聊天"),
    "going_on": ("Chats that go on", "进行中的聊天"),
    "characters": ("Characters", "角色"),
    "finished": ("Finished", "已结束"),
    "begin": ("Begin a chat", "开始聊天"),
    "begin_with": ("Begin a chat with {name}", "与{name}开始聊天"),
    "go_on": ("Go on", "继续"),
    "look": ("Look at it again", "再看看"),
    "rated_of": ("{rated} of {replies} replies rated", "已评 {rated}/{replies} 条回复"),
    "no_reply_yet": ("no reply yet", "还没有回复"),
    "imported": ("A chat from your history", "你的聊天记录"),
    # a chat
    "scene": ("The scene", "场景"),
    "opening": ("Opening (not rated)", "开场白（不评分）"),
    "you": ("You", "你"),
    "rating_of": (
        "Your rating of this reply, 1 to 5; the keys 1 to 5 rate it",
        "给这条回复打分，1 到 5；可按数字键 1 到 5",
    ),
    "rating_1": ("1: made me want to leave", "1：让我想离开"),
    "rating_2": ("2: annoyed me", "2：有些烦"),
    "rating_3": ("3: all right", "3：一般"),
    "rating_4": ("4: pleased me", "4：喜欢"),
    "rating_5": ("5: delighted me", "5：非常喜欢"),
    "low": ("want to leave", "想离开"),
    "high": ("delighted", "非常喜欢"),
    "rate_keys": (
        "Keys: 1–5 rate the marked reply, ↑ and ↓ move the mark, Enter sends, Shift+Enter breaks "
        "the line.",
        "键盘：1–5 给标出的回复打分，↑ ↓ 移动标记，Enter 发送，Shift+Enter 换行。",
    ),
    "note": ("Note", "备注"),
    "note_label": ("A note about this reply (only if you like)", "关于这条回复的备注（可不填）"),
    "save_note": ("Save the note", "保存备注"),
    "regenerate": ("Write it anew", "重新生成"),
    "edit": ("Change my message", "修改我的消息"),
    "save_edit": ("Send the changed message", "发送修改后的消息"),
    "cancel": ("Cancel", "取消"),
    "message": ("Your message", "你的消息"),
    "send": ("Send", "发送"),
    "leave": ("Leave the chat", "离开聊天"),
    "leave_sure": ("Leave this chat for good?", "确定离开这次聊天吗？"),
    "leave_unrated": ("{count} replies are not rated yet.", "还有 {count} 条回复没有评分。"),
    "leave_farewell": (
        "What you have typed is sent as your last words.",
        "你已输入的内容会作为最后一句话发送。",
    ),
    "leave_yes": ("Leave", "离开"),
    "leave_no": ("Stay", "留下"),
    "done_rating": ("I am done with this chat", "这段聊天评完了"),
    "you_left": ("You left here.", "你在这里离开了。"),
    "is_over": (
        "This chat is over. You can still change your ratings.",
        "这次聊天已结束。你仍可修改评分。",
    ),
    "cannot_reply": (
        "This character is no longer part of the study: you can rate and leave.",
        "这个角色已不在本研究中：你可以评分或离开。",
    ),
    "is_full": ("This chat is as long as a chat may be.", "这次聊天已达长度上限。"),
    "cut_off": ("The reply was cut off at its length limit.", "回复因长度限制被截断。"),
    # what the script says
    "saving": ("Saving …", "正在保存……"),
    "saved": ("Saved.", "已保存。"),
    "not_saved": (
        "Not saved yet: the server cannot be reached. It is tried again by itself.",
        "尚未保存：无法连接服务器，正在自动重试。",
    ),
    "writing": ("The reply is being written …", "正在写回复……"),
    "reply_there": ("The reply is there.", "回复已写好。"),
    "try_again": ("Ask for the reply again", "再次请求回复"),
    "blocked": (
        "The model's provider blocked the reply. Change your message, or leave.",
        "回复被模型服务商拦截。请修改你的消息，或离开。",
    ),
    "empty": (
        "The model said nothing. Ask again, change your message, or leave.",
        "模型没有回复。请再试一次、修改你的消息，或离开。",
    ),
    "model": (
        "The model cannot be reached now. Ask again in a while.",
        "暂时无法连接模型。请稍后再试。",
    ),
    # why something was not done
    "gone": ("That is not here (any more).", "这里没有（或不再有）该内容。"),
    "changed": (
        "This chat was changed in another window. Here it is as it stands now.",
        "这次聊天已在另一个窗口中更改，现在显示的是最新状态。",
    ),
    "key_used": ("That was sent before, with other content.", "该请求此前已用于其他内容。"),
    "closed": ("This chat is over.", "这次聊天已结束。"),
    "not_now": ("Wait for the reply first.", "请先等待回复。"),
    "fixed": ("This cannot be changed.", "此内容不可更改。"),
    "full": ("There is no room for more here.", "已达上限。"),
    "too_fast": ("That was too fast: wait a little.", "操作太快，请稍等。"),
    "too_long": ("That is too long.", "内容太长。"),
    "malformed": ("The request could not be understood.", "无法理解该请求。"),
    "forged": ("The page is out of date: load it again.", "页面已过期：请重新加载。"),
    "broken": ("Something went wrong. Load the page again.", "出错了。请重新加载页面。"),
    # links
    "unknown": (
        "This link does not work. Check that it is whole, or ask who sent it for a new one.",
        "此链接无效。请检查是否完整，或向发送者索取新链接。",
    ),
    "expired": (
        "This link has expired. Ask who sent it for a new one.",
        "此链接已过期。请向发送者索取新链接。",
    ),
    "revoked": (
        "This link was withdrawn. Ask who sent it for a new one.",
        "此链接已被撤回。请向发送者索取新链接。",
    ),
    "no_link": (
        "Open the link that you were sent: it says who you are.",
        "请打开发给你的链接：它表明你的身份。",
    ),
}

# What the page's script says; the rest is in the page.
SCRIPT_WORDS = (
    *("saving", "saved", "not_saved", "writing", "reply_there", "model", "changed", "broken"),
    *("leave_unrated", "too_fast"),
)


def words(language: Language) -> dict[str, str]:
    """All sentences in one language."""
    return {key: both[language == "zh"] for key, both in _WORDS.items()}


def language_of(chosen: str | None, accepted: str) -> Language:
    """The language that a visitor chose, else the first of their browser's that there is."""
    if chosen in ("en", "zh"):
        return "zh" if chosen == "zh" else "en"
    for tag in accepted.lower().split(","):
        if tag.strip().startswith("zh"):
            return "zh"
        if tag.strip().startswith("en"):
            return "en"
    return "en"
