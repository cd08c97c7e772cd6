/** Files that are dropped on the page or pasted into it. */

/**
 * @param {(file: File) => void} take
 * @param {(reason: string) => void} refuse
 */
export function receiveFiles(take, refuse) {
  const dropping = (on) => document.body.classList.toggle("dropping", on);
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    dropping(true);
  });
  document.addEventListener("dragleave", () => dropping(false));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    dropping(false);
    const [file] = event.dataTransfer.files;
    if (file) take(file);
    else refuse("What was dropped is no file. Save the picture first, then drop it here.");
  });
  document.addEventListener("paste", (event) => {
    const [file] = event.clipboardData.files;
    if (file) take(file);
  });
}
