//! Plots as SVG: bars beside each other for figures, lines for what changes over time.
//!
//! In: panels of named bars, or named series of points. Out: a file. Drawn by a library; only colours, sizes and the
//! place of labels are decided here.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

const PANEL_WIDTH: u32 = 420;
const BAR_HEIGHT: u32 = 26;
const HEAD_HEIGHT: u32 = 44;
const PANEL_HEAD_HEIGHT: u32 = 34;
const PANELS_ABREAST: usize = 2;
/// Room for a server's name, left of its bar.
const NAME_WIDTH: i32 = 170;
/// Of the longest bar: room for the figure right of it.
const FIGURE_ROOM: f64 = 1.25;
const LARDER: RGBColor = RGBColor(0x2e, 0x8b, 0x57);
const FLOOR: RGBColor = RGBColor(0x99, 0x99, 0x99);
const PEER: RGBColor = RGBColor(0x46, 0x82, 0xb4);
const SERIES: &[RGBColor] = &[LARDER, PEER, RGBColor(0xc0, 0x6c, 0x2b), RGBColor(0x80, 0x50, 0xa0), FLOOR];

/// Bars under one title.
pub(crate) struct Panel {
    pub(crate) title: String,
    /// Name and length; one that is no number is left out.
    pub(crate) bars: Vec<(String, f64)>,
}

/// Points that belong together.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Panels of horizontal bars, each with a scale of its own.
pub(crate) fn bars(file: &Path, title: &str, panels: &[Panel]) -> Result<()> {
    let longest = panels.iter().map(|panel| panel.bars.len()).max().unwrap_or(0).max(1);
    let abreast = panels.len().clamp(1, PANELS_ABREAST);
    let rows = panels.len().div_ceil(abreast).max(1);
    let panel_height = PANEL_HEAD_HEIGHT + BAR_HEIGHT * u32::try_from(longest)?;
    let size = (PANEL_WIDTH * u32::try_from(abreast)?, HEAD_HEIGHT + panel_height * u32::try_from(rows)?);
    let root = SVGBackend::new(file, size).into_drawing_area();
    draw_bars(&root, title, panels, (rows, abreast)).map_err(|why| anyhow!("{}: {why}", file.display()))?;
    root.present().map_err(|why| anyhow!("{}: {why}", file.display()))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw_bars(root: &Area<'_>, title: &str, panels: &[Panel], grid: (usize, usize)) -> Drawn {
    root.fill(&WHITE)?;
    let below = root.titled(title, ("sans-serif", 18))?;
    for (area, panel) in below.split_evenly(grid).iter().zip(panels) {
        let area = area.titled(&panel.title, ("sans-serif", 17))?;
        let most = panel.bars.iter().map(|bar| bar.1).filter(|value| value.is_finite()).fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(&area).margin_left(NAME_WIDTH).margin_right(6).build_cartesian_2d(
            0.0..most.max(f64::MIN_POSITIVE) * FIGURE_ROOM,
            0.0..count(panel.bars.len()),
        )?;
        for (place, (name, value)) in panel.bars.iter().enumerate() {
            if !value.is_finite() {
                continue;
            }
            // The first stands on top.
            let foot = count(panel.bars.len() - 1 - place);
            let colour = match name.as_str() {
                "floor" => FLOOR,
                name if name.starts_with("larder") => LARDER,
                _ => PEER,
            };
            let bar = Rectangle::new([(0.0, foot + 0.15), (*value, foot + 0.85)], colour.filled());
            chart.draw_series(std::iter::once(bar))?;
            let figure = if *value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") };
            let beside =
                EmptyElement::at((*value, foot + 0.72)) + Text::new(figure, (6, 0), ("sans-serif", 15));
            chart.plotting_area().draw(&beside)?;
            let before = EmptyElement::at((0.0, foot + 0.72))
                + Text::new(name.clone(), (8 - NAME_WIDTH, 0), ("sans-serif", 15));
            chart.plotting_area().draw(&before)?;
        }
    }
    Ok(())
}

/// Lines over a common scale; `x` and `y` name what the axes count, with their units.
pub(crate) fn lines(file: &Path, title: &str, x: &str, y: &str, series: &[Series]) -> Result<()> {
    let root = SVGBackend::new(file, (PANEL_WIDTH * 2, 420)).into_drawing_area();
    draw_lines(&root, title, x, y, series).map_err(|why| anyhow!("{}: {why}", file.display()))?;
    root.present().map_err(|why| anyhow!("{}: {why}", file.display()))
}

fn draw_lines(root: &Area<'_>, title: &str, x: &str, y: &str, series: &[Series]) -> Drawn {
    root.fill(&WHITE)?;
    let all = || series.iter().flat_map(|series| &series.points);
    let widest = all().map(|point| point.0).fold(f64::MIN_POSITIVE, f64::max);
    let highest = all().map(|point| point.1).fold(f64::MIN_POSITIVE, f64::max);
    let mut chart = ChartBuilder::on(root)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..widest, 0.0..highest * 1.05)?;
    chart.configure_mesh().x_desc(x).y_desc(y).light_line_style(WHITE).draw()?;
    for (series, colour) in series.iter().zip(SERIES.iter().cycle()) {
        let colour = *colour;
        chart
            .draw_series(LineSeries::new(series.points.iter().copied(), colour.stroke_width(2)))?
            .label(series.name.clone())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(FLOOR).draw()?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn count(of: usize) -> f64 {
    of as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_and_figures_stand_in_the_plot() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.svg");
        let all =
            vec![("larder".to_owned(), 5.25), ("nginx".to_owned(), f64::NAN), ("floor".to_owned(), 5.0)];
        let panels =
            ["134 B", "8 KB", "1 MB"].map(|title| Panel { title: title.to_owned(), bars: all.clone() });
        bars(&file, "Hits", &panels).unwrap();
        let svg = std::fs::read_to_string(&file).unwrap();
        for text in ["Hits", "134 B", "1 MB", "larder", "5.2", "floor"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains("nginx"));
        bars(&file, "Nothing", &[]).unwrap();
    }

    #[test]
    fn a_series_is_drawn_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.svg");
        let points = vec![(0.0, 1.0), (1.0, 3.0)];
        lines(&file, "Memory", "s", "MB", &[Series { name: "resident".to_owned(), points }]).unwrap();
        let svg = std::fs::read_to_string(&file).unwrap();
        assert!(svg.contains("resident") && svg.contains("polyline"));
    }
}
