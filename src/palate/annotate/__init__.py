"""The rating app: invited people chat with a study's candidates and rate what they are told.

command.py       what `palate annotate` does: invites, lists, exports, or serves
database.py      SQLite or PostgreSQL, opened and brought up to date by numbered migrations
schema.py        the tables
invitations.py   links with a secret, and how far each person is
actions.py       what a browser may ask for, as types
chats.py         chats as they are read;  acting.py  as they are changed, each action once
sessions.py      chats out as sessions, unrated sessions in as chats
characters.py    the study's cards and candidates, and what they are asked
replies.py       replies while they are written
app.py           the pages and the addresses;  pages.py, words.py  what they show
guard.py         headers, sizes, rates, who is asking
serve.py         the listening socket
"""
