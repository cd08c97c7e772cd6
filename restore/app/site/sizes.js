/** The size of a picture as its file states it, so that a huge one is refused before a pixel of it is decoded. */

/** @typedef {{format: string, width: number, height: number}} Size */

// Photographs carry previews and colour profiles ahead of their size.
export const HEAD = 1 << 20;

/**
 * @param {Uint8Array} head the first bytes of a file
 * @returns {Size | null} null for what is no PNG, JPEG, GIF, BMP or WebP file, or does not state its size
 */
export function statedSize(head) {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  try {
    return png(view) ?? gif(view) ?? bmp(view) ?? webp(view) ?? jpeg(view);
  } catch (fault) {
    if (fault instanceof RangeError) return null; // the file ends before its size
    throw fault;
  }
}

/** Whether the bytes at an offset spell a text. */
function spells(view, offset, text) {
  return [...text].every((letter, i) => view.getUint8(offset + i) === letter.charCodeAt(0));
}

function png(view) {
  if (view.byteLength < 8 || !spells(view, 0, "\x89PNG\r\n\x1a\n")) return null;
  return { format: "PNG", width: view.getUint32(16), height: view.getUint32(20) };
}

function gif(view) {
  if (!spells(view, 0, "GIF8")) return null;
  return { format: "GIF", width: view.getUint16(6, true), height: view.getUint16(8, true) };
}

function bmp(view) {
  if (!spells(view, 0, "BM")) return null;
  // A negative height says that the rows run from the top.
  return { format: "BMP", width: view.getInt32(18, true), height: Math.abs(view.getInt32(22, true)) };
}

function webp(view) {
  if (!spells(view, 0, "RIFF") || !spells(view, 8, "WEBP")) return null;
  const size = (width, height) => ({ format: "WebP", width, height });
  if (spells(view, 12, "VP8X")) {
    const uint24 = (offset) => view.getUint16(offset, true) + (view.getUint8(offset + 2) << 16);
    return size(uint24(24) + 1, uint24(27) + 1);
  }
  if (spells(view, 12, "VP8L")) {
    const bits = view.getUint32(21, true);
    return size((bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1);
  }
  return size(view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff);
}

function jpeg(view) {
  if (view.getUint16(0) !== 0xffd8) return null;
  for (let offset = 2; ; offset += 2 + view.getUint16(offset + 2)) {
    while (view.getUint8(offset) === 0xff && view.getUint8(offset + 1) === 0xff) offset += 1; // padding
    if (view.getUint8(offset) !== 0xff) return null;
    const marker = view.getUint8(offset + 1);
    // The frame header, of any coding; C4, C8 and CC among its markers mean something else.
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      return { format: "JPEG", width: view.getUint16(offset + 7), height: view.getUint16(offset + 5) };
    }
  }
}
