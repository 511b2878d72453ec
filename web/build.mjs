// SPDX-License-Identifier: GPL-3.0-or-later
// Bundles the page into dist/: a few files, which the program has inside. The licences of what was
// bundled come with it.
import { build } from "esbuild";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
mkdirSync("dist");
const { metafile } = await build({
	entryPoints: ["src/main.tsx"],
	bundle: true,
	splitting: true,
	minify: true,
	format: "esm",
	target: "es2021",
	jsx: "automatic",
	jsxImportSource: "preact",
	legalComments: "none",
	metafile: true,
	outdir: "dist",
	logLevel: "warning",
});
const used = new Set(Object.keys(metafile.inputs).map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]));
used.delete(undefined);
const texts = [...used].sort().map((name) => {
	const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"].map((one) => `node_modules/${name}/${one}`).find(existsSync);
	if (!file)
		throw new Error(`${name} has no licence`);
	return `${name}\n\n${readFileSync(file, "utf8")}`;
});
writeFileSync("dist/licences.txt", texts.join("\n----\n\n"));
copyFileSync("src/index.html", "dist/index.html");
