// A page that is opened from a disk may not read other pages, so the search shows titles without text.
DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = location.protocol !== "file:";

// Names in the first column of a table, such as those of metrics, may be broken after an underscore.
for (const cell of document.querySelectorAll("article td:first-child")) {
	const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
	const names = [];
	while (texts.nextNode()) names.push(texts.currentNode);
	for (const name of names) {
		name.replaceWith(...name.data.split(/(?<=_)/).flatMap((part, i) => (i === 0 ? [part] : [document.createElement("wbr"), part])));
	}
}
