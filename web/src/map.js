// map.js - a world map with the number of posts in each cell, and the boxes of the question.
//
// It uses Miller's cylindrical projection: meridians are straight, so a box of longitudes and latitudes is a rectangle,
// and high latitudes are enlarged less than in Mercator's. There are two canvases: the land, drawn when the view
// changes, and above it everything that changes with the data.

import { geoPath, geoProjection } from 'd3-geo';
import { feature, mesh } from 'topojson-client';
import worldUrl from 'world-atlas/countries-110m.json';
import { $, announce } from './dom.js';
import { STEPS, stepBounds } from './steps.js';
import { colour } from './theme.js';

const WEST = -180;
const EAST = 180;
const SOUTH = -58;
const NORTH = 84;
const FEW = 50; // posts; cells with fewer are drawn as dots
const CLICK = 4; // pixels; a longer movement of the pointer is a drag
const MOST_ZOOM = 12;
const PAN = 60; // pixels per key press

const millerY = (latitude) => 1.25 * Math.log(Math.tan(Math.PI / 4 + 0.4 * latitude));
const miller = (longitude, latitude) => [longitude, millerY(latitude)];
miller.invert = (x, y) => [x, 2.5 * (Math.atan(Math.exp(0.8 * y)) - Math.PI / 4)];

const RADIAN = Math.PI / 180;
const TOP = millerY(NORTH * RADIAN);
const BOTTOM = millerY(SOUTH * RADIAN);
export const ASPECT = (2 * Math.PI) / (TOP - BOTTOM);

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const round = (degrees) => Math.round(degrees * 100) / 100;


export class WorldMap {
  // onBox(box, isBeside): a box was drawn, or a cell was clicked (isBeside: with Shift); onZoom(): cells of another
  // size are needed.
  constructor(root, { onBox, onZoom }) {
    this.root = root;
    this.onBox = onBox;
    this.onZoom = onZoom;
    this.land = $('canvas.land', root);
    this.top = $('canvas.top', root);
    this.drawButton = $('#draw-box');
    this.cells = { degrees: 10, posts: [] };
    this.bounds = [];
    this.line = 'a';
    this.boxes = [];
    this.zoom = 1;
    this.centre = [0, (TOP + BOTTOM) / 2]; // in units of the projection
    this.isDrawing = false;
    this.corner = null;   // of the box being drawn, in degrees
    this.pointer = null;  // the opposite corner
    this.projection = geoProjection(miller).precision(0.3);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(root);
    this.load();
  }

  async load() {
    const world = await (await fetch(worldUrl)).json();
    this.shapes = {
      land: feature(world, world.objects.land),
      borders: mesh(world, world.objects.countries, (a, b) => a !== b),
    };
    this.resize();
    this.root.classList.add('is-there');
  }

  /* --- data --- */

  // `groups`: [['west,south', posts], ...], for cells with sides of `degrees`; `line`: the letter that determines the
  // colour.
  setCells(degrees, groups, line) {
    const drawn = JSON.stringify([degrees, groups, line]);
    if (this.drawn === drawn) return;
    this.drawn = drawn;
    const posts = groups.filter(([key]) => key !== 'none').map(([key, count]) => [...key.split(',').map(Number), count]);
    this.cells = { degrees, posts };
    this.line = line;
    this.placed = posts.reduce((all, [, , count]) => all + count, 0);
    this.bounds = posts.length > 0 ? stepBounds(Math.max(...posts.map(([, , count]) => count))) : [];
    this.wake();
  }

  // The side of a cell in degrees at this zoom.
  get cellDegrees() {
    if (this.zoom < 2) return 10;
    return this.zoom < 5 ? 5 : 2;
  }

  // The visible part, for the address: "zoom,longitude,latitude"; null: everything.
  get shown() {
    if (this.zoom === 1) return null;
    const [longitude, latitude] = miller.invert(...this.centre);
    return [this.zoom, longitude / RADIAN, latitude / RADIAN].map(round).join(',');
  }

  set shown(text) {
    const [zoom, longitude, latitude] = (text ?? '').split(',').map(Number);
    const isPlace = [zoom, longitude, latitude].every(Number.isFinite);
    this.zoom = isPlace ? clamp(zoom, 1, MOST_ZOOM) : 1;
    if (isPlace) this.centre = [longitude * RADIAN, millerY(clamp(latitude, SOUTH, NORTH) * RADIAN)];
    this.resize();
  }

  setBoxes(boxes) {
    this.boxes = boxes;
    this.wake();
  }

  // --- the view ---

  resize() {
    const width = this.root.clientWidth;
    if (width === 0) return;
    const height = Math.round(width / ASPECT);
    const ratio = Math.min(2, devicePixelRatio || 1);
    Object.assign(this, { width, height, ratio });
    for (const canvas of [this.land, this.top]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    this.setView();
  }

  panBy(x, y) {
    this.centre[0] += x / this.scale;
    this.centre[1] -= y / this.scale;
    this.setView();
  }

  setView() {
    const scale = (this.width / (2 * Math.PI)) * this.zoom;
    const halfX = this.width / 2 / scale;
    const halfY = this.height / 2 / scale;
    this.centre[0] = clamp(this.centre[0], -Math.PI + halfX, Math.PI - halfX);
    this.centre[1] = clamp(this.centre[1], BOTTOM + halfY, TOP - halfY);
    this.scale = scale;
    this.root.classList.toggle('is-zoomed', this.zoom > 1);
    this.projection.scale(scale)
      .translate([this.width / 2 - this.centre[0] * scale, this.height / 2 + this.centre[1] * scale])
      .clipExtent([[-20, -20], [this.width + 20, this.height + 20]]);
    this.drawLand();
    this.wake();
  }

  zoomBy(factor, [x, y] = [this.width / 2, this.height / 2]) {
    const before = this.zoom;
    this.zoom = clamp(before * factor, 1, MOST_ZOOM);
    // The point at (x, y) does not move.
    const moved = (1 / before - 1 / this.zoom) / (this.width / (2 * Math.PI));
    this.centre[0] += (x - this.width / 2) * moved;
    this.centre[1] -= (y - this.height / 2) * moved;
    this.setView();
    this.onZoom();
  }

  place(longitude, latitude) {
    return [
      this.width / 2 + (longitude * RADIAN - this.centre[0]) * this.scale,
      this.height / 2 - (millerY(clamp(latitude, -89, 89) * RADIAN) - this.centre[1]) * this.scale,
    ];
  }

  degrees([x, y]) {
    const [longitude, latitude] = miller.invert((x - this.width / 2) / this.scale + this.centre[0],
      (this.height / 2 - y) / this.scale + this.centre[1]);
    return [clamp(longitude / RADIAN, WEST, EAST), clamp(latitude / RADIAN, -90, 90)];
  }

  // --- drawing ---

  drawLand() {
    if (!this.shapes) return;
    const context = this.land.getContext('2d');
    const path = geoPath(this.projection, context);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.beginPath();
    path(this.shapes.land);
    context.fillStyle = colour('land');
    context.fill();
    context.beginPath();
    path(this.shapes.borders);
    context.strokeStyle = colour('border-of-land');
    context.lineWidth = 0.6;
    context.stroke();
  }

  wake() {
    if (this.frame || !this.width) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.drawTop();
    });
  }

  drawTop() {
    const context = this.top.getContext('2d');
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.drawCells(context);
    this.drawBoxes(context);
  }

  stepOf(posts) {
    return this.bounds.findIndex((bound) => posts <= bound);
  }

  alphaOf(step) {
    return 0.3 + (0.7 * (step + 1 + STEPS - this.bounds.length)) / STEPS;
  }

  drawCells(context) {
    const { degrees, posts } = this.cells;
    context.fillStyle = colour(`line-${this.line}`);
    for (const [west, south, count] of posts) {
      context.globalAlpha = Math.min(1, this.alphaOf(this.stepOf(count)));
      if (this.placed < FEW) {
        const [x, y] = this.place(west + degrees / 2, south + degrees / 2);
        context.beginPath();
        context.arc(x, y, 3 + Math.sqrt(count), 0, 2 * Math.PI);
        context.fill();
      } else {
        const [x0, y0] = this.place(west, south + degrees);
        const [x1, y1] = this.place(west + degrees, south);
        context.fillRect(x0 + 0.5, y0 + 0.5, x1 - x0 - 1, y1 - y0 - 1);
      }
    }
    context.globalAlpha = 1;
  }

  // The cell under a pixel, as a box, if it has posts.
  cellAt(pixel) {
    const [longitude, latitude] = this.degrees(pixel);
    const { degrees, posts } = this.cells;
    const cell = posts.find(([west, south]) => longitude >= west && longitude < west + degrees && latitude >= south && latitude < south + degrees);
    return cell ? [cell[0], cell[1], Math.min(EAST, cell[0] + degrees), Math.min(90, cell[1] + degrees)].map(round) : null;
  }

  drawBoxes(context) {
    context.lineWidth = 1.5;
    context.strokeStyle = colour('accent');
    context.fillStyle = colour('accent-soft');
    const boxes = this.corner && this.pointer ? [...this.boxes, boxBetween(this.corner, this.pointer)] : this.boxes;
    for (const [west, south, east, north] of boxes) {
      for (const [from, to] of west <= east ? [[west, east]] : [[west, EAST], [WEST, east]]) {
        const [x0, y0] = this.place(from, north);
        const [x1, y1] = this.place(to, south);
        context.fillRect(x0, y0, x1 - x0, y1 - y0);
        context.strokeRect(x0, y0, x1 - x0, y1 - y0);
      }
    }
    if (this.isDrawing && this.pointer && this.hasKeys) {
      const [x, y] = this.place(...this.pointer);
      context.beginPath();
      context.moveTo(x - 9, y);
      context.lineTo(x + 9, y);
      context.moveTo(x, y - 9);
      context.lineTo(x, y + 9);
      context.stroke();
    }
  }

  // --- pointer and keys ---

  setDrawing(isDrawing) {
    this.isDrawing = isDrawing;
    this.corner = null;
    this.pointer = null;
    this.hasKeys = false;
    this.root.classList.toggle('is-drawing', isDrawing);
    this.drawButton.setAttribute('aria-pressed', String(isDrawing));
    $('#map-hint').hidden = !isDrawing;
    this.wake();
  }

  finishBox() {
    const box = boxBetween(this.corner, this.pointer);
    this.setDrawing(false);
    if (box[0] === box[2] || box[1] === box[3]) return; // a click, not a box
    this.onBox(box, false);
  }

  listen() {
    const at = (event) => {
      const { left, top } = this.top.getBoundingClientRect();
      return [event.clientX - left, event.clientY - top];
    };
    this.top.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      this.drag = at(event);
      this.pressed = this.drag;
      if (this.isDrawing || this.zoom > 1) this.top.setPointerCapture(event.pointerId);
      if (!this.isDrawing) return;
      this.hasKeys = false;
      this.corner = this.pointer = this.degrees(this.drag);
    });
    this.top.addEventListener('pointermove', (event) => {
      const cell = this.isDrawing ? null : this.cellAt(at(event));
      this.root.classList.toggle('is-over', cell !== null);
      if (!this.drag) return;
      const now = at(event);
      if (this.isDrawing) {
        this.pointer = this.degrees(now);
        this.wake();
        return;
      }
      this.panBy(this.drag[0] - now[0], this.drag[1] - now[1]);
      this.drag = now;
    });
    this.top.addEventListener('pointerup', (event) => {
      const now = at(event);
      if (this.drag && this.isDrawing) this.finishBox();
      else if (this.drag && Math.hypot(now[0] - this.pressed[0], now[1] - this.pressed[1]) < CLICK) {
        const cell = this.cellAt(now);
        if (cell) this.onBox(cell, event.shiftKey);
      }
      this.drag = null;
    });
    this.top.addEventListener('pointercancel', () => {
      this.drag = null;
      if (this.isDrawing) this.setDrawing(false);
    });
    this.top.addEventListener('dblclick', (event) => this.zoomBy(2, at(event)));
    this.top.addEventListener('keydown', (event) => this.key(event));
    this.drawButton.addEventListener('click', () => {
      this.setDrawing(!this.isDrawing);
      if (this.isDrawing) this.top.focus({ preventScroll: true });
    });
    $('#zoom-in').addEventListener('click', () => this.zoomBy(1.6));
    $('#zoom-out').addEventListener('click', () => this.zoomBy(1 / 1.6));
    document.addEventListener('themechange', () => { this.drawLand(); this.wake(); });
  }

  key(event) {
    if (!this.isDrawing) {
      const pan = { ArrowLeft: [-PAN, 0], ArrowRight: [PAN, 0], ArrowUp: [0, -PAN], ArrowDown: [0, PAN] }[event.key];
      if (event.key === '+') this.zoomBy(1.6);
      else if (event.key === '-') this.zoomBy(1 / 1.6);
      else if (pan && this.zoom > 1) {
        this.panBy(...pan);
        event.preventDefault();
      }
      return;
    }
    const step = (event.shiftKey ? 1 : 5) / this.zoom;
    const move = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
    if (move) {
      this.hasKeys = true;
      this.pointer ??= this.degrees([this.width / 2, this.height / 2]);
      this.pointer = [clamp(this.pointer[0] + move[0], WEST, EAST), clamp(this.pointer[1] + move[1], SOUTH, NORTH)];
      announce(printPlace(this.pointer));
    } else if (event.key === 'Enter' && this.pointer) {
      if (this.corner) this.finishBox();
      else {
        this.corner = this.pointer;
        announce(`First corner at ${printPlace(this.corner)}`);
      }
    } else if (event.key === 'Escape') {
      this.setDrawing(false);
      this.drawButton.focus();
    } else {
      return;
    }
    event.preventDefault();
    this.wake();
  }
}

function printPlace([longitude, latitude]) {
  return `${Math.abs(round(latitude))} ${latitude < 0 ? 'south' : 'north'}, ${Math.abs(round(longitude))} ${longitude < 0 ? 'west' : 'east'}`;
}

function boxBetween([x0, y0], [x1, y1]) {
  return [Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1)].map(round);
}
