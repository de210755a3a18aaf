//! Durations in fixed, roughly logarithmic buckets: four per power of two of a microsecond, up to 67 s and one beyond.
//!
//! Fixed buckets can be summed over workers and over time, which exact percentiles cannot; four per octave bound the
//! error of a percentile to a quarter. Observing is one bucket and the sum, two adds in the worker's own lines.
//! Prometheus sees the bounds that are powers of two (from 32 us), so that a scrape stays small.

use std::time::Duration;

use crate::cells::{FixedCells, SumInto as _};

const SUB: usize = 4;
/// The last octave ends at 2^26 us, 67 s: past every default limit of a single wait.
const LAST_EXPONENT: usize = 25;
const BOUNDED: usize = SUB + (LAST_EXPONENT - 1) * SUB;
const OVERFLOW: usize = BOUNDED;
const SUM_US: usize = BOUNDED + 1;
const CELLS: usize = BOUNDED + 2;
const EXPOSED_FROM_US: u64 = 32;
/// Powers of two from 32 us, and one beyond them: what pictures tell apart.
pub const OCTAVES: usize = 22;

/// The bucket of a duration of `us` microseconds: the first whose bound is not below it.
fn bucket(us: u64) -> usize {
    let below = us.saturating_sub(1);
    if below < SUB as u64 {
        return below as usize;
    }
    let exponent = below.ilog2() as usize;
    let index = SUB + (exponent - 2) * SUB + ((below >> (exponent - 2)) & 3) as usize;
    index.min(OVERFLOW)
}

/// The largest duration in microseconds that bucket `index` holds; `index` is below `BOUNDED`.
fn bound_us(index: usize) -> u64 {
    if index < SUB {
        return index as u64 + 1;
    }
    let (octave, sub) = ((index - SUB) / SUB, (index - SUB) % SUB);
    ((SUB + sub + 1) as u64) << octave
}

/// One worker's histogram.
#[derive(Debug, Default)]
pub struct Histogram {
    cells: FixedCells<CELLS>,
}

impl Histogram {
    /// Counts one duration, rounded up to whole microseconds.
    pub fn observe(&self, took: Duration) {
        let us = whole_us(took);
        self.cells.add(bucket(us), 1);
        self.cells.add(SUM_US, us);
    }
}

fn whole_us(took: Duration) -> u64 {
    let whole = took.as_secs().saturating_mul(1_000_000);
    whole.saturating_add(u64::from(took.subsec_nanos().div_ceil(1000))).min(u64::MAX >> 8)
}

/// The sum of several workers' histograms at one moment; or a histogram of its own for what happens rarely.
#[derive(Clone, Debug)]
pub struct HistogramSnapshot {
    cells: Vec<u64>,
}

impl Default for HistogramSnapshot {
    fn default() -> Self {
        Self { cells: vec![0; CELLS] }
    }
}

/// The duration in seconds that a share `p` of all did not exceed, of counts by [`OCTAVES`]. `None` of nothing. Within a power of two the durations
/// are taken to lie evenly on a scale of logarithms, so it is at most twice too high or half too low.
pub fn octave_percentile(counts: &[u64; OCTAVES], p: f64) -> Option<f64> {
    let count: u64 = counts.iter().sum();
    let rank = p.clamp(0.0, 1.0) * count as f64;
    let mut seen = 0.0;
    for (bound, n) in HistogramSnapshot::octave_bounds().into_iter().zip(counts).filter(|(_, n)| **n > 0) {
        let more = *n as f64;
        if seen + more >= rank {
            return Some(bound * ((rank - seen) / more - 1.0).exp2());
        }
        seen += more;
    }
    None
}

impl HistogramSnapshot {
    /// Adds a worker's histogram.
    pub fn add(&mut self, histogram: &Histogram) {
        histogram.cells.sum_into(&mut self.cells);
    }

    /// Counts one duration, rounded up to whole microseconds: for what is too rare for cells of each worker.
    pub fn observe(&mut self, took: Duration) {
        let us = whole_us(took);
        for (index, n) in [(bucket(us), 1), (SUM_US, us)] {
            if let Some(cell) = self.cells.get_mut(index) {
                *cell = cell.wrapping_add(n);
            }
        }
    }

    /// Adds what another one has observed.
    pub(crate) fn absorb(&mut self, other: &Self) {
        self.cells.iter_mut().zip(&other.cells).for_each(|(sum, cell)| *sum = sum.wrapping_add(*cell));
    }

    /// What was observed since an earlier moment of the same.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let cells = self.cells.iter().zip(&earlier.cells);
        Self { cells: cells.map(|(now, before)| now.wrapping_sub(*before)).collect() }
    }

    /// The upper bounds of [`HistogramSnapshot::octaves`], in seconds; the last one has none in truth.
    pub fn octave_bounds() -> [f64; OCTAVES] {
        std::array::from_fn(|octave| (EXPOSED_FROM_US << octave) as f64 / 1e6)
    }

    /// How many durations lie in each power of two: up to 32 us, up to 64 us, and so on; all others in the last one.
    pub fn octaves(&self) -> [u64; OCTAVES] {
        let mut octaves = [0; OCTAVES];
        for (index, count) in self.buckets().iter().enumerate().filter(|(_, count)| **count > 0) {
            let bound = bound_us(index.min(BOUNDED - 1)).next_power_of_two();
            let octave = bound.ilog2().saturating_sub(EXPOSED_FROM_US.ilog2()) as usize;
            if let Some(sum) = octaves.get_mut(octave.min(OCTAVES - 1)) {
                *sum += count;
            }
        }
        octaves
    }

    fn buckets(&self) -> &[u64] {
        &self.cells[..=OVERFLOW]
    }

    /// How many durations were observed.
    pub fn count(&self) -> u64 {
        self.buckets().iter().sum()
    }

    /// All durations together, in seconds.
    pub fn sum_seconds(&self) -> f64 {
        self.cells[SUM_US] as f64 / 1e6
    }

    /// The duration in seconds that a share `p` (0 to 1) of all observations did not exceed: the bound of the bucket
    /// where that share is reached, so at most a quarter too high. `None` where nothing was observed. Beyond the last
    /// bound, that bound.
    pub fn percentile(&self, p: f64) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = ((p.clamp(0.0, 1.0) * count as f64).ceil() as u64).clamp(1, count);
        let mut seen = 0;
        for (index, n) in self.buckets().iter().enumerate() {
            seen += n;
            if seen >= rank {
                return Some(bound_us(index.min(BOUNDED - 1)) as f64 / 1e6);
            }
        }
        None
    }

    /// For the exposition: upper bounds in seconds with the number of observations not above each, ascending. The
    /// unbounded bucket is left out: it is [`HistogramSnapshot::count`].
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let mut seen = 0;
        self.buckets()[..BOUNDED].iter().enumerate().filter_map(move |(index, n)| {
            seen += n;
            let bound = bound_us(index);
            (bound.is_power_of_two() && bound >= EXPOSED_FROM_US).then_some((bound as f64 / 1e6, seen))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_start_where_they_should() {
        for (us, bound) in
            [(0, 1), (1, 1), (2, 2), (4, 4), (5, 5), (8, 8), (9, 10), (10, 10), (1024, 1024), (1025, 1280)]
        {
            assert_eq!(bound_us(bucket(us)), bound, "{us} us");
        }
        assert_eq!(bound_us(BOUNDED - 1), 1 << 26);
        assert_eq!(bucket(1 << 26), BOUNDED - 1);
        assert_eq!(bucket((1 << 26) + 1), OVERFLOW);
        assert_eq!(bucket(u64::MAX), OVERFLOW);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_what_is_put_in(us in 0_u64..1 << 26) {
            let index = bucket(us);
            prop_assert!(us <= bound_us(index));
            prop_assert!(index == 0 || us > bound_us(index - 1));
            prop_assert!(us < 8 || (bound_us(index) as f64) < us as f64 * 1.25 + 1.0);
        }
    }

    fn of(durations: &[Duration]) -> HistogramSnapshot {
        let histogram = Histogram::default();
        durations.iter().for_each(|took| histogram.observe(*took));
        let mut snapshot = HistogramSnapshot::default();
        snapshot.add(&histogram);
        let mut own = HistogramSnapshot::default();
        durations.iter().for_each(|took| own.observe(*took));
        assert_eq!(own.cells, snapshot.cells, "one of its own counts the same");
        snapshot
    }

    #[test]
    fn percentiles_come_from_the_bucket_where_the_share_is_reached() {
        let ms: Vec<_> = (1..=100).map(Duration::from_millis).collect();
        let snapshot = of(&ms);
        for (p, at_least, at_most) in
            [(0.0, 0.001, 0.00125), (0.5, 0.05, 0.0625), (0.99, 0.099, 0.124), (1.0, 0.1, 0.125)]
        {
            let value = snapshot.percentile(p).unwrap();
            assert!((at_least..=at_most).contains(&value), "p{p}: {value}");
        }
        assert_eq!(HistogramSnapshot::default().percentile(0.5), None);
        assert!((snapshot.sum_seconds() - 5.05).abs() < 1e-9);
    }

    #[test]
    fn percentiles_of_octaves_lie_within_their_power_of_two() {
        assert_eq!(octave_percentile(&[0; OCTAVES], 0.5), None);
        let ms: Vec<_> = (1..=100).map(Duration::from_millis).collect();
        let octaves = of(&ms).octaves();
        for (p, exact) in [(0.5, 0.05), (0.9, 0.09), (0.99, 0.099), (1.0, 0.1)] {
            let value = octave_percentile(&octaves, p).unwrap();
            assert!((exact / 2.0..=exact * 2.0).contains(&value), "p{p}: {value}");
        }
    }

    #[test]
    fn cumulative_counts_rise_and_end_below_or_at_the_count() {
        let snapshot = of(&[
            Duration::ZERO,
            Duration::from_micros(32),
            Duration::from_micros(33),
            Duration::from_secs(100),
        ]);
        let rows: Vec<_> = snapshot.cumulative().collect();
        assert_eq!(rows.first(), Some(&(0.000_032, 2)));
        assert_eq!(rows.get(1), Some(&(0.000_064, 3)));
        assert_eq!(rows.last().map(|row| row.1), Some(3));
        assert_eq!(snapshot.count(), 4);
        assert_eq!(rows.len(), 22);
        let octaves = snapshot.octaves();
        assert_eq!((octaves[0], octaves[1], octaves[OCTAVES - 1], octaves.iter().sum::<u64>()), (2, 1, 1, 4));
        assert_eq!(HistogramSnapshot::octave_bounds()[21], 67.108_864);
        let later = of(&[
            Duration::from_micros(33),
            Duration::ZERO,
            Duration::from_micros(32),
            Duration::from_secs(100),
            Duration::from_secs(1),
        ]);
        let between = later.since(&snapshot);
        assert_eq!((between.count(), between.sum_seconds()), (1, 1.0));
    }
}
