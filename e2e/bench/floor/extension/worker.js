/** Forwards text from the socket to the Port, and back: one socket per Port, so an open one is ready. */
chrome.runtime.onConnect.addListener(async (port) => {
  const answer = await fetch(chrome.runtime.getURL("config.json"));
  const config = await answer.json();
  const socket = new WebSocket(`ws://127.0.0.1:${config.port}`);
  socket.onmessage = ({ data }) => port.postMessage(data);
  port.onMessage.addListener((text) => socket.send(text));
});
