// map.js - the world, the points of posts, and the boxes that are asked for.
//
// Miller's cylindrical projection: the meridians are straight, so a box of longitudes and
// latitudes is a rectangle, and the high latitudes are not as huge as Mercator's. Two canvases: the
// land, drawn when the view changes, and above it what moves.

import { geoPath, geoProjection } from 'd3-geo';
import { feature, mesh } from 'topojson-client';
import worldUrl from 'world-atlas/countries-110m.json';
import { $, announce } from './dom.js';
import { colour } from './theme.js';

const WEST = -180;
const EAST = 180;
const SOUTH = -58;
const NORTH = 84;
const MOST_POINTS = 3000;
const MANY_POINTS = 200;
const CALM_MS = 80; // between two pictures of many points
const PULSE_MS = 900;
const BRIGHT_MS = 60_000;
const MOST_ZOOM = 12;
const PAN = 60; // pixels a key

const millerY = (latitude) => 1.25 * Math.log(Math.tan(Math.PI / 4 + 0.4 * latitude));
const miller = (longitude, latitude) => [longitude, millerY(latitude)];
miller.invert = (x, y) => [x, 2.5 * (Math.atan(Math.exp(0.8 * y)) - Math.PI / 4)];

const RADIAN = Math.PI / 180;
const TOP = millerY(NORTH * RADIAN);
const BOTTOM = millerY(SOUTH * RADIAN);
export const ASPECT = (2 * Math.PI) / (TOP - BOTTOM);

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const round = (degrees) => Math.round(degrees * 100) / 100;

// "w,s,e,n, ..." -> [[w, s, e, n], ...]; what is no complete box is left out.
export function parseBoxes(text) {
  const numbers = text.split(/[,，]/).map((part) => part.trim()).filter(Boolean).map(Number);
  const boxes = [];
  for (let i = 0; i + 4 <= numbers.length; i += 4) {
    const box = numbers.slice(i, i + 4);
    if (box.every(Number.isFinite)) boxes.push(box);
  }
  return boxes;
}

export const printBox = (box) => box.map((degrees) => String(round(degrees))).join(',');

export class WorldMap {
  // `onBox(box)`: somebody has drawn one.
  constructor(root, onBox) {
    this.root = root;
    this.onBox = onBox;
    this.land = $('canvas.land', root);
    this.top = $('canvas.top', root);
    this.drawButton = $('#draw-box');
    this.points = [];
    this.drawnAt = 0;
    this.boxes = [];
    this.zoom = 1;
    this.centre = [0, (TOP + BOTTOM) / 2]; // in the projection's units
    this.isDrawing = false;
    this.corner = null;   // of the box that is being drawn, in degrees
    this.pointer = null;  // its other corner
    this.reduced = matchMedia('(prefers-reduced-motion: reduce)');
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

  // --- what others tell it ---

  addPoint(id, longitude, latitude) {
    if (!(Math.abs(longitude) <= 180 && Math.abs(latitude) <= 90)) return;
    this.points.push({ id, longitude, latitude, at: performance.now() });
    if (this.points.length > MOST_POINTS * 1.2) this.points.splice(0, this.points.length - MOST_POINTS);
    this.wake();
  }

  removePoint(id) {
    const point = this.points.find((one) => one.id === id);
    if (point) this.points.splice(this.points.indexOf(point), 1);
    this.wake();
  }

  clear() {
    this.points = [];
    this.wake();
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
    // What is under (x, y) stays there.
    const moved = (1 / before - 1 / this.zoom) / (this.width / (2 * Math.PI));
    this.centre[0] += (x - this.width / 2) * moved;
    this.centre[1] -= (y - this.height / 2) * moved;
    this.setView();
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

  // Few points move smoothly; of many nobody sees each frame, and they cost more.
  wake() {
    if (this.frame || !this.width) return;
    this.frame = requestAnimationFrame((now) => {
      this.frame = 0;
      if (this.points.length > MANY_POINTS && !this.drag && now - this.drawnAt < CALM_MS) this.wake();
      else this.drawTop(now);
    });
  }

  drawTop(now) {
    this.drawnAt = now;
    const context = this.top.getContext('2d');
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.drawBoxes(context);
    if (this.drawPoints(context, now)) this.wake();
    else this.dim ??= setTimeout(() => { this.dim = null; this.wake(); }, 2000);
  }

  // True: something moves.
  drawPoints(context, now) {
    const fill = colour('point');
    const size = this.points.length > MANY_POINTS ? 2 : 3;
    let moves = false;
    context.fillStyle = fill;
    for (const { longitude, latitude, at } of this.points) {
      const [x, y] = this.place(longitude, latitude);
      const age = Math.max(0, now - at);
      context.globalAlpha = clamp(0.9 - (age / BRIGHT_MS) * 0.55, 0.35, 0.9);
      context.fillRect(x - size / 2, y - size / 2, size, size);
    }
    context.strokeStyle = fill;
    context.lineWidth = 1.5;
    for (let i = this.points.length - 1; i >= 0 && !this.reduced.matches; i--) {
      const age = Math.max(0, now - this.points[i].at); // it may have come since the frame began
      if (age > PULSE_MS || this.points.length - i > 60) break;
      const [x, y] = this.place(this.points[i].longitude, this.points[i].latitude);
      context.globalAlpha = (1 - age / PULSE_MS) * 0.8;
      context.beginPath();
      context.arc(x, y, 3 + (age / PULSE_MS) * 13, 0, 2 * Math.PI);
      context.stroke();
      moves = true;
    }
    context.globalAlpha = 1;
    return moves;
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
    if (box[0] === box[2] || box[1] === box[3]) return; // a click, no box
    this.onBox(box);
  }

  listen() {
    const at = (event) => {
      const { left, top } = this.top.getBoundingClientRect();
      return [event.clientX - left, event.clientY - top];
    };
    this.top.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || (!this.isDrawing && this.zoom === 1)) return;
      this.top.setPointerCapture(event.pointerId);
      this.drag = at(event);
      if (!this.isDrawing) return;
      this.hasKeys = false;
      this.corner = this.pointer = this.degrees(this.drag);
    });
    this.top.addEventListener('pointermove', (event) => {
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
    this.top.addEventListener('pointerup', () => {
      if (this.drag && this.isDrawing) this.finishBox();
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
