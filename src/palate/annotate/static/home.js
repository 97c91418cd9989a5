import { newKey, send, state, status } from "/static/sending.js";

for (const button of document.querySelectorAll("button.begin")) {
  // One key a button: a double click begins one chat.
  const key = newKey();
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const done = await send("/chats", { key, card: button.dataset.card }, () => {});
      location.assign(`/chats/${done.chat}`);
    } catch (error) {
      status.textContent = error.message;
      button.disabled = false;
    }
  });
}

// A page that comes back from the browser's memory has keys that were used.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
void state;
