// Shows what is pointed at beside the legend. Without this the same text appears as a tool tip.
for (const plot of document.querySelectorAll("figure.plot")) {
  const output = plot.querySelector("output");
  let current = null;
  const show = (hit) => {
    if (current) current.classList.remove("on");
    current = hit;
    if (hit) hit.classList.add("on");
    output.textContent = hit ? hit.dataset.tip : "";
  };
  for (const hit of plot.querySelectorAll(".hit")) {
    const title = hit.querySelector("title");
    hit.dataset.tip = title.textContent;
    title.remove();
    hit.addEventListener("pointerenter", () => show(hit));
    hit.addEventListener("pointerdown", () => show(hit));
  }
  plot.addEventListener("pointerleave", () => show(null));
}
