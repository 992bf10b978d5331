"use strict";
(() => {
  const trials = [...document.querySelectorAll("details.trial")];
  const open = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) {
      target.hidden = false;
      target.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", open);
  open();
  const form = document.getElementById("search");
  if (!form) return;
  form.hidden = false;
  const [input, verdict, count, all] = ["input", "select", "output", "button"].map((name) => form.querySelector(name));
  const search = () => {
    const words = input.value.toLowerCase();
    let found = 0;
    for (const trial of trials) {
      const meant = !verdict.value || trial.dataset.verdict === verdict.value;
      trial.hidden = !meant || (words !== "" && !trial.textContent.toLowerCase().includes(words));
      found += trial.hidden ? 0 : 1;
    }
    count.textContent = words || verdict.value ? `${found} of ${trials.length}` : "";
  };
  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 150);
  });
  verdict.addEventListener("change", search);
  form.addEventListener("submit", (event) => event.preventDefault());
  all.addEventListener("click", () => {
    const opened = all.textContent === "Open all";
    for (const trial of trials) trial.open = opened;
    all.textContent = opened ? "Close all" : "Open all";
  });
})();
