"""Line plots as SVG, with the standard library only."""

COLOURS = ["#0b6fa4", "#d1495b", "#3d8b37", "#8d6a9f", "#c98b1d", "#555555"]


def round_up(top):
    """Returns a round number at or above `top`, for an axis."""
    base = 1e-3
    while base < top:
        base *= 10
    return next(base * f for f in (0.1, 0.2, 0.25, 0.5, 1.0) if base * f >= top)


def lines(path, title, across, up, series, width=720, height=320):
    """Writes a plot. `across` and `up` are the labels of the axes, `series` is a list of (name, [(x, y), ...])."""
    left, right, top, bottom = 56, 16, 34, 44
    wide, high = width - left - right, height - top - bottom
    most_x = max(x for _, points in series for x, _ in points)
    most_y = round_up(max(max(y for _, points in series for _, y in points), 1e-9))
    to_x = lambda x: left + wide * x / most_x
    to_y = lambda y: top + high * (1 - y / most_y)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>', f'<text x="{left}" y="20" font-size="14">{title}</text>']
    for part in range(6):
        y = most_y * part / 5
        out.append(f'<path d="M{left} {to_y(y):.1f}h{wide}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{to_y(y) + 4:.1f}" text-anchor="end">{y:g}</text>')
    step = round_up(most_x / 8)
    for part in range(int(most_x / step + 1e-9) + 1):
        x = step * part
        out.append(f'<text x="{to_x(x):.1f}" y="{top + high + 16}" text-anchor="middle">{x:g}</text>')
    for number, (name, points) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        path_data = " ".join(f"{to_x(x):.1f},{to_y(y):.1f}" for x, y in points)
        out.append(f'<polyline points="{path_data}" fill="none" stroke="{colour}" stroke-width="1.3"/>'
                   f'<text x="{left + 130 * number}" y="{height - 8}" fill="{colour}">{name}</text>')
    out.append(f'<text x="{width - right}" y="{height - 8}" text-anchor="end">{across}</text>'
               f'<text x="{width - right}" y="20" text-anchor="end">{up}</text></svg>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")
