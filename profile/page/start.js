// SPDX-License-Identifier: GPL-3.0-or-later
// Unpacks the script of the page, which build-aux/bundle-page has compressed, and starts it.
try {
	const packed = Uint8Array.from(atob(document.getElementById("packed").textContent),
		(c) => c.charCodeAt(0));
	const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
	const script = document.createElement("script");
	script.type = "module";
	script.textContent = await new Response(unpacked).text();
	document.head.append(script);
} catch (error) {
	document.body.prepend(`This page needs a newer browser: ${error.message}`);
}
