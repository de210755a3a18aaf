//! A round of one question to several servers whose majority counts.
//!
//! In: a question to each of them, with its own time limit. Out: what each has answered, in their order. Once more than half have answered, the
//! others have as long again and a moment: one that is silent must not make what the others say old.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};

/// What those have at least that are slower than most.
const GRACE: Duration = Duration::from_millis(50);

/// Asks all of them at once.
///
/// # Cancel safety
/// As that of the questions.
pub(super) async fn ask_all<T, A>(asked: impl Iterator<Item = A>) -> Vec<Result<T, String>>
where
    A: Future<Output = Result<T, String>>,
{
    let began = Instant::now();
    let numbered = asked.enumerate().map(async |(number, asking)| (number, asking.await));
    let mut asking: FuturesUnordered<_> = numbered.collect();
    let of = asking.len();
    let mut answers: Vec<Result<T, String>> =
        (0..of).map(|_| Err("it is slower than most others".to_owned())).collect();
    let (mut answered, mut until) = (0, None);
    loop {
        let next = match until {
            None => asking.next().await,
            Some(until) => timeout_at(until, asking.next()).await.unwrap_or(None),
        };
        let Some((number, answer)) = next else { return answers };
        answered += usize::from(answer.is_ok());
        if let Some(place) = answers.get_mut(number) {
            *place = answer;
        }
        if until.is_none() && answered * 2 > of {
            let now = Instant::now();
            until = Some(now + now.duration_since(began) + GRACE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::Pin;

    use tokio::time::sleep;

    use super::*;

    type Asking = Pin<Box<dyn Future<Output = Result<u8, String>>>>;

    fn after(millis: u64, answer: Result<u8, String>) -> Asking {
        Box::pin(async move {
            sleep(Duration::from_millis(millis)).await;
            answer
        })
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_silent_is_not_waited_for_when_most_have_answered() {
        let began = Instant::now();
        let answers = ask_all([after(100, Ok(1)), Box::pin(pending()), after(80, Ok(3))].into_iter()).await;
        assert_eq!((answers[0].clone(), answers[1].is_err(), answers[2].clone()), (Ok(1), true, Ok(3)));
        assert_eq!(began.elapsed().as_millis(), 100 + 100 + 50);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_a_little_slower_is_heard_and_without_a_majority_all_are() {
        let answers = ask_all([after(100, Ok(1)), after(180, Ok(2)), after(1, Ok(3))].into_iter()).await;
        assert_eq!(answers, [Ok(1), Ok(2), Ok(3)]);
        let refused = || after(1, Err("refused".to_owned()));
        let answers = ask_all([refused(), after(5000, Ok(2)), refused(), after(1, Ok(4))].into_iter()).await;
        assert_eq!((answers[1].clone(), answers[3].clone()), (Ok(2), Ok(4)));
        let none: [Asking; 0] = [];
        assert!(ask_all(none.into_iter()).await.is_empty());
        assert_eq!(ask_all([after(0, Ok(7))].into_iter()).await, [Ok(7)]);
    }
}
