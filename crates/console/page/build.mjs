// Bundles src/ into dist/, which is checked in: Fanfare is built without npm. The first line of
// each bundle has the SHA-256 of all that it was made of; a test compares it with the files.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { copyFileSync, readFileSync, readdirSync } from "node:fs";

process.chdir(fileURLToPath(new URL(".", import.meta.url)));

const sources = [
  "build.mjs",
  "package-lock.json",
  "package.json",
  "tsconfig.json",
  ...readdirSync("src").map((name) => `src/${name}`),
].sort();
const hash = createHash("sha256");
for (const path of sources) {
  hash.update(`${path}\0`).update(readFileSync(path)).update("\0");
}
const about = `/* The page of Fanfare's console with uPlot (MIT). Sources: sha256 ${hash.digest("hex")} */`;

await build({
  entryPoints: { page: "src/main.ts" },
  outdir: process.argv[2] ?? "dist",
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "iife",
  target: ["es2022"],
  legalComments: "none",
  banner: { js: about, css: about },
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) {
  copyFileSync(`src/${name}`, `${process.argv[2] ?? "dist"}/${name}`);
}
