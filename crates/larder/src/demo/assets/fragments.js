// Says on each box how old it is, and lets the visitor choose a name.
const boxes = document.querySelectorAll("[data-rendered]");
const show = () => boxes.forEach((box) => {
  const age = Math.max(0, Date.now() - Number(box.dataset.rendered)) / 1000;
  box.querySelector(".age").textContent = `${age.toFixed(1)} s old`;
});
show();
setInterval(show, 100);
document.querySelectorAll("[data-visitor]").forEach((button) => button.addEventListener("click", () => {
  document.cookie = `visitor=${button.dataset.visitor}; path=/`;
  location.reload();
}));
