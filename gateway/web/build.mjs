// SPDX-License-Identifier: GPL-3.0-or-later
// Bundles the page into dist/: a few files, which the program has inside. The licences of what was
// bundled come with it.
import { build } from "esbuild";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";

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
// What the first view needs is asked for at once, not when the script that imports it has come.
const [entry] = Object.values(metafile.outputs).filter(({ entryPoint }) => entryPoint === "src/main.tsx");
const needed = entry.imports.filter(({ kind }) => kind === "import-statement")
	.map(({ path }) => `<link rel="modulepreload" href="/${basename(path)}">\n`);
writeFileSync("dist/index.html", readFileSync("src/index.html", "utf8").replace("</head>", `${needed.join("")}</head>`));
