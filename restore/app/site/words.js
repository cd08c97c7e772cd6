/** What the server says in the words of its options, in the words of this page. */

/** The controls that do what an option does, by how the server names it; the first that a text names counts. */
const CONTROLS = [
  [/p='scan'/, "if it is a page, choose “A scanned page”"],
  [/sigma='auto'/, "choose “Grain of a grey picture”"],
  [/remove='specks'/, "choose “Show marks” to have its specks removed"],
  [/invert=/, "let its polarity be found"],
];

/** What helps with any picture. */
const TOLD = "choose a prior and p to restore it all the same";

/** Advice of the server about a picture that it did not restore. @param {string | null} remedy */
export function advice(remedy) {
  return CONTROLS.find(([option]) => option.test(remedy ?? ""))?.[1] ?? TOLD;
}

/** A note of the server. @param {string} note */
export function noted(note) {
  return note
    .replace(/; remove='[^']*' removes (them|it)/, "; “Show marks” shows $1")
    .replace(/; leave invert=\w+ out/, "; let its polarity be found");
}
