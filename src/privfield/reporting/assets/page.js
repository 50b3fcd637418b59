"use strict";
(function () {
  var data = JSON.parse(document.getElementById("data").textContent);
  var byId = function (id) { return document.getElementById(id); };

  /* -- network ------------------------------------------------------------------------------- */
  var cy = null, select = function () {};
  if (data.network && window.cytoscape) {
    var net = data.network, box = byId("network"), info = byId("network-info"), tip = byId("tip");
    var idle = info.textContent, narrow = box.clientWidth < 560, legible = 12;
    var dark = window.matchMedia("(prefers-color-scheme: dark)");
    var color = function (name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); };
    var looks = function () {
      return [
        { selector: "node", style: { width: net.size, height: net.size,
          "background-color": function (node) { return color(node.data("fill")); },
          "border-color": color("ink"), "border-width": 1.6, label: "data(label)", "text-valign": "bottom",
          "text-margin-y": 3, "font-size": net.font, "font-family": "sans-serif", color: color("ink"),
          "text-outline-color": color("paper"), "text-outline-width": 2.5, "z-index": 10 } },
        { selector: "node.above", style: { "text-valign": "top", "text-margin-y": -3 } },
        { selector: "node.right", style: { "text-valign": "center", "text-halign": "right", "text-margin-x": 3, "text-margin-y": 0 } },
        { selector: "node.left", style: { "text-valign": "center", "text-halign": "left", "text-margin-x": -3, "text-margin-y": 0 } },
        { selector: "node.quiet", style: { label: "" } },
        { selector: "edge", style: { width: "data(width)", "line-color": "data(color)", opacity: "data(opacity)",
          "curve-style": "straight" } },
        { selector: "edge.uncertain", style: { opacity: dark.matches ? 0.6 : 0.4 } },
        { selector: "edge.dashed", style: { "line-style": "dashed", "line-dash-pattern": [9, 5] } },
        { selector: "edge.hidden", style: { display: "none" } },
        { selector: "edge.on", style: { opacity: 1, "underlay-color": "#f0c000", "underlay-opacity": 0.55,
          "underlay-padding": 5, "z-index": 9 } },
        { selector: "node.on", style: { "border-width": 4, "border-color": "#f0a000", label: "data(label)" } },
        { selector: ".faded", style: { opacity: 0.12 } }
      ];
    };
    cy = window.cytoscape({
      container: box,
      elements: net.nodes.map(function (n, i) {
        return { data: { id: "n" + i, name: n.name, label: n.label, info: n.info, fill: n.fill },
          position: narrow ? { x: n.y, y: n.x } : { x: n.x, y: n.y } };
      }).concat(net.edges.map(function (e, i) {
        return { data: { id: "e" + i, source: "n" + e.from, target: "n" + e.to, color: e.color, width: e.width,
          opacity: e.opacity, text: e.text, status: e.status }, classes: (e.dashed ? "dashed " : "") + e.status };
      }).reverse()),
      layout: { name: "preset", fit: true, padding: 26 },
      userZoomingEnabled: false, boxSelectionEnabled: false, autounselectify: true, minZoom: 0.2, maxZoom: 6,
      style: looks()
    });
    dark.addEventListener("change", function () { cy.style(looks()); });
    /* Labels are never smaller than people can read. Each goes below its node, or beside it, where it is free, inside
       the picture and on the fewest clear lines; those that have no place wait for a closer look. Returns how many are
       written. */
    var pen = document.createElement("canvas").getContext("2d");
    var meet = function (a, b) { return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]; };
    var cuts = function (line, a) {  /* does the line from one point to another cross the box? */
      var from = 0, to = 1;
      for (var k = 0; k < 2; k++) {
        var step = line[k + 2] - line[k], low = a[k] - line[k], high = a[k + 2] - line[k];
        if (Math.abs(step) < 1e-9) { if (low > 0 || high < 0) { return false; } continue; }
        from = Math.max(from, Math.min(low / step, high / step));
        to = Math.min(to, Math.max(low / step, high / step));
      }
      return from < to;
    };
    var write = function () {
      var zoom = cy.zoom(), size = Math.max(net.font * zoom, legible), high = 1.35 * size, radius = net.size * zoom / 2, taken = [];
      var inside = function (a) { return a[0] >= 0 && a[1] >= 0 && a[2] <= cy.width() && a[3] <= cy.height(); };
      pen.font = size + "px sans-serif";
      var bodies = cy.nodes().map(function (node) {
        var at = node.renderedPosition();
        return { id: node.id(), box: [at.x - radius, at.y - radius, at.x + radius, at.y + radius] };
      });
      var strong = cy.edges().filter(function (e) { return e.data("status") !== "uncertain" && !e.hasClass("hidden"); });
      var lines = strong.length > 400 ? [] : strong.map(function (e) {
        var a = e.source().renderedPosition(), b = e.target().renderedPosition();
        return [a.x, a.y, b.x, b.y];
      });
      cy.batch(function () {
        cy.nodes().sort(function (a, b) { return b.degree() - a.degree() || a.id().localeCompare(b.id()); }).forEach(function (node) {
          var at = node.renderedPosition(), wide = pen.measureText(node.data("label")).width + 6, edge = radius + 3;
          var x = Math.max(0, Math.min(at.x - wide / 2, cy.width() - wide));  /* pushed inside */
          var places = { below: [x, at.y + radius, x + wide, at.y + radius + high],
            above: [x, at.y - radius - high, x + wide, at.y - radius],
            right: [at.x + edge, at.y - high / 2, at.x + edge + wide, at.y + high / 2],
            left: [at.x - edge - wide, at.y - high / 2, at.x - edge, at.y + high / 2] };
          var names = Object.keys(places).filter(function (name) {
            return inside(places[name]) && !taken.some(function (box) { return meet(places[name], box); });
          });
          var clean = names.filter(function (name) {
            return !bodies.some(function (body) { return body.id !== node.id() && meet(places[name], body.box); });
          });
          var crossed = function (name) { return lines.filter(function (line) { return cuts(line, places[name]); }).length; };
          clean.sort(function (a, b) { return crossed(a) - crossed(b); });
          var place = clean[0] || (names[0] === "below" ? "below" : "");  /* on another node at worst, never on a label */
          var aside = { right: 3, left: -3 }[place] || (x - at.x + wide / 2) / zoom;
          node.style("text-margin-x", aside);
          Object.keys(places).forEach(function (name) { node.toggleClass(name, name === place); });
          node.toggleClass("quiet", !place);
          if (place) { taken.push(places[place]); }
        });
        cy.nodes().style("font-size", size / zoom);
      });
      return taken.length;
    };
    cy.on("zoom pan", write);
    var walk = -1;
    var clear = function () {
      cy.elements().removeClass("on faded"); tip.hidden = true; info.textContent = idle;
      document.querySelectorAll("#edges tr.on").forEach(function (row) { row.classList.remove("on"); });
    };
    var showTip = function (text, at) {
      tip.textContent = text; tip.hidden = false;
      var left = Math.min(at.x + 14, box.clientWidth - tip.offsetWidth - 6);
      tip.style.left = Math.max(4, left) + "px";
      tip.style.top = (box.offsetTop + Math.max(4, at.y - tip.offsetHeight - 12)) + "px";
    };
    select = function (element, at) {
      clear();
      element.addClass("on");
      if (element.isEdge()) {
        element.connectedNodes().addClass("on");
        info.textContent = element.data("text");
        if (at) { showTip(element.data("text"), at); }
        var row = document.querySelector('#edges tr[data-edge="' + element.id() + '"]');
        if (row) { row.classList.add("on"); }
      } else {
        var near = element.connectedEdges(":visible");
        cy.elements().not(element.closedNeighborhood(":visible")).not(near.connectedNodes()).addClass("faded");
        var text = element.data("name") + ": " + element.data("info") + "; " + near.length + " edge" + (near.length === 1 ? "" : "s") + " shown";
        info.textContent = text;
        if (at) { showTip(text, at); }
      }
    };
    cy.on("mouseover", "edge, node", function (event) { select(event.target, event.renderedPosition); });
    cy.on("mouseout", "edge, node", clear);
    box.addEventListener("mouseleave", clear);
    cy.on("tap", "edge, node", function (event) { select(event.target, event.renderedPosition); });
    var ticks = document.querySelectorAll("input[data-status]");
    var refresh = function () {
      ticks.forEach(function (tick) { cy.edges("." + tick.dataset.status).toggleClass("hidden", !tick.checked); });
    };
    ticks.forEach(function (tick) { tick.addEventListener("change", refresh); });
    refresh();
    var zoom = function (factor) { cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } }); };
    /* Nodes fill the picture where their labels find room in it; else the picture shrinks until more of them do. */
    var fit = function () {
      cy.nodes().addClass("quiet"); cy.fit(undefined, 26);
      var here = write(), zoom = cy.zoom(), pan = Object.assign({}, cy.pan());
      if (here === cy.nodes().length) { return; }
      cy.fit(undefined, 26); write(); cy.fit(undefined, 26);
      if (write() <= here) { cy.viewport({ zoom: zoom, pan: pan }); write(); }
    };
    byId("zoom-in").addEventListener("click", function () { zoom(1.25); });
    byId("zoom-out").addEventListener("click", function () { zoom(0.8); });
    byId("zoom-fit").addEventListener("click", fit);
    window.addEventListener("resize", function () { cy.resize(); fit(); });
    fit();
    box.addEventListener("keydown", function (event) {
      var shown = net.edges.map(function (_, i) { return cy.getElementById("e" + i); }).filter(function (e) { return e.visible(); });
      var step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step && shown.length) {
        walk = (walk + step + shown.length) % shown.length;
        var middle = shown[walk].renderedMidpoint();
        select(shown[walk], middle);
      } else if (event.key === "+") { zoom(1.25); } else if (event.key === "-") { zoom(0.8); }
      else if (event.key === "Escape") { walk = -1; clear(); } else { return; }
      event.preventDefault();
    });
    box.addEventListener("blur", function () { walk = -1; clear(); });
    window.privfieldNetwork = cy;
  }

  /* -- edge table ---------------------------------------------------------------------------- */
  var table = byId("edges");
  if (table) {
    var body = table.tBodies[0], rows = Array.prototype.slice.call(body.rows), records = data.edges.rows;
    rows.forEach(function (row) {
      var record = records[Number(row.dataset.n)], drawn = record[9];
      if (drawn === null || !cy) { return; }
      row.dataset.edge = "e" + drawn;
      row.addEventListener("mouseenter", function () { select(cy.getElementById("e" + drawn)); });
    });
    table.addEventListener("mouseleave", function () { if (cy) { cy.elements().removeClass("on faded"); } });
    table.tHead.addEventListener("click", function (event) {
      var button = event.target.closest("button");
      if (!button) { return; }
      var head = button.parentNode, key = Number(button.dataset.key), numeric = button.dataset.number !== undefined;
      var old = head.getAttribute("aria-sort"), down = old ? old === "ascending" : numeric;
      table.querySelectorAll("[aria-sort]").forEach(function (th) { th.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      var value = function (row) { return records[Number(row.dataset.n)][key]; };
      rows.sort(function (a, b) {
        var x = value(a), y = value(b);
        if (x === null || y === null) { return (x === null) - (y === null); }
        var order = numeric ? x - y : String(x).localeCompare(String(y));
        return down ? -order : order;
      });
      rows.forEach(function (row) { body.appendChild(row); });
    });
    byId("filter").addEventListener("input", function () {
      var wanted = this.value.toLowerCase(), shown = 0;
      rows.forEach(function (row) {
        var record = records[Number(row.dataset.n)];
        row.hidden = (record[0] + " " + record[1] + " " + record[8]).toLowerCase().indexOf(wanted) < 0;
        if (!row.hidden) { shown += 1; }
      });
      byId("filter-count").textContent = wanted ? shown + " of " + rows.length : "";
    });
    byId("download").addEventListener("click", function () {
      var cell = function (value) {
        var text = value === null ? "" : String(value);
        return /[",\n\r]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
      };
      var lines = [data.edges.columns].concat(records.map(function (r) { return r.slice(0, 9); }));
      var text = lines.map(function (line) { return line.map(cell).join(","); }).join("\r\n") + "\r\n";
      if (data.stamp) { text = "# " + data.stamp + "\r\n" + text; }
      var link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob(["\ufeff" + text], { type: "text/csv" }));
      link.download = data.stamp ? "edges.NOT-PRIVATE.csv" : "edges.csv";
      link.click();
      setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
    });
  }

  /* -- tables that are wider than the window say so ------------------------------------------- */
  var widths = function () {
    document.querySelectorAll(".scroll").forEach(function (part) {
      part.classList.remove("wide");  /* which gives words more room: measured without */
      part.classList.toggle("wide", part.scrollWidth > part.clientWidth + 1);
    });
  };
  window.addEventListener("resize", widths);
  widths();

  /* -- levels that are folded away ------------------------------------------------------------ */
  document.querySelectorAll("button.unfold").forEach(function (button) {
    button.addEventListener("click", function () {
      var open = button.closest("tbody").classList.toggle("open");
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? "fewer levels" : button.dataset.more;
    });
  });

  /* -- methods ------------------------------------------------------------------------------- */
  byId("copy").addEventListener("click", function () {
    var range = document.createRange(), chosen = window.getSelection();
    range.selectNodeContents(byId("methods"));
    chosen.removeAllRanges(); chosen.addRange(range);
    var done = false;
    try { done = document.execCommand("copy"); } catch (error) { done = false; }
    byId("copied").textContent = done ? "Copied." : "Selected: press Ctrl+C.";
  });
})();
