'use strict';

/* --- tables that sort --- */

function value(row, column) {
	const cell = row.cells[column];
	const number = cell.dataset.value;

	return number === undefined ? cell.textContent : Number(number);
}

function sort(table, column, direction) {
	const body = table.tBodies[0];
	const rows = Array.from(body.rows);

	rows.sort((a, b) => {
		const x = value(a, column), y = value(b, column);

		return (x < y ? -1 : x > y ? 1 : 0) * direction;
	});
	rows.forEach(row => body.appendChild(row));
}

function sortable(table) {
	const heads = Array.from(table.tHead.rows[0].cells);

	heads.forEach((head, column) => {
		const button = document.createElement('button');

		button.type = 'button';
		button.textContent = head.textContent;
		head.textContent = '';
		head.appendChild(button);
		button.addEventListener('click', () => {
			const down = head.getAttribute('aria-sort') !== 'descending';

			heads.forEach(h => h.removeAttribute('aria-sort'));
			head.setAttribute('aria-sort',
				down ? 'descending' : 'ascending');
			sort(table, column, down ? -1 : 1);
		});
	});
}

document.querySelectorAll('table.sorts').forEach(sortable);

/* --- the flame graph --- */

const NS = 'http://www.w3.org/2000/svg';
const WIDTH = 1100, ROW = 18, LETTER = 7;

function weight(node, kind) {
	return kind === 'wait' ? node.w : kind === 'kernel' ? node.k :
		node.w + node.k;
}

function depth(node, kind) {
	return 1 + Math.max(0, ...node.c.filter(c => weight(c, kind) > 0)
		.map(c => depth(c, kind)));
}

function time(ns) {
	const units = [[3600e9, 'h'], [60e9, 'min'], [1e9, 's'], [1e6, 'ms'],
		[1e3, 'us']];

	for (const [size, name] of units)
		if (ns >= size)
			return (ns / size).toPrecision(3) + ' ' + name;
	return ns.toFixed(0) + ' ns';
}

function hue(name) {
	let h = 0;

	for (const letter of name.split('!')[0])
		h = (h * 31 + letter.codePointAt(0)) % 360;
	return 'hsl(' + h + ' 65% 75%)';
}

function element(name, attributes, parent) {
	const e = document.createElementNS(NS, name);

	for (const key in attributes)
		e.setAttribute(key, attributes[key]);
	parent.appendChild(e);
	return e;
}

function flame(root) {
	const svg = document.getElementById('flame');
	const says = document.getElementById('flame-says');
	const whole = document.getElementById('flame-whole');
	let kind = 'both', top = root;

	function say(node) {
		const all = weight(root, kind), ns = weight(node, kind);

		says.textContent = node.n + ': ' + time(ns) + ', ' +
			(all > 0 ? (100 * ns / all).toFixed(1) : '0') + ' %';
	}

	function zoom(node) {
		top = node;
		draw();
		say(node);
	}

	function box(node, x, width, level) {
		const g = element('g', {tabindex: 0, role: 'button'}, svg);
		const room = Math.floor(width / LETTER) - 1;

		element('rect', {x: x, y: level * ROW, width: width, height: ROW,
			fill: hue(node.n)}, g);
		g.setAttribute('aria-label', node.n + ', ' +
			time(weight(node, kind)));
		if (room > 2)
			element('text', {x: x + 3, y: level * ROW + 13}, g)
				.textContent = node.n.length > room ?
					node.n.slice(0, room - 1) + '\u2026' :
					node.n;
		g.addEventListener('click', () => zoom(node));
		g.addEventListener('keydown', e => {
			if (e.key === 'Enter' || e.key === ' ') {
				e.preventDefault();
				zoom(node);
			}
		});
		g.addEventListener('mouseenter', () => say(node));
		g.addEventListener('focus', () => say(node));
	}

	function boxes(node, x, width, level) {
		let at = x;

		if (width < 1)
			return;
		box(node, x, width, level);
		node.c.forEach(child => {
			const part = width * weight(child, kind) /
				weight(node, kind);

			if (part > 0)
				boxes(child, at, part, level + 1);
			at += part || 0;
		});
	}

	function draw() {
		const rows = depth(top, kind);

		svg.textContent = '';
		svg.setAttribute('viewBox', '0 0 ' + WIDTH + ' ' + rows * ROW);
		if (weight(top, kind) > 0)
			boxes(top, 0, WIDTH, 0);
		whole.disabled = top === root;
	}

	document.getElementsByName('weight').forEach(radio => {
		radio.addEventListener('change', () => {
			kind = radio.value;
			top = root;
			draw();
			say(root);
		});
	});
	whole.addEventListener('click', () => zoom(root));
	draw();
}

const tree = document.getElementById('flame-data');

if (tree)
	flame(JSON.parse(tree.textContent));
