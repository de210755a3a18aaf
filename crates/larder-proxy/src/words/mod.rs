//! Every fixed word that larder tells of an exchange, with what it means: for views, which then need no list of their own.
//!
//! In: the enums that the words come from. Out: a [`Word`] for each, in the order of its enum. A sentence that `larder explain` has is the
//! one that stands here; `own`, `failures` and `details` have sentences for words that have none there.
//! Deliberately absent: words of pages that are assembled, which `larder explain` tells with the template, and words of the metrics alone.

mod details;
mod failures;
mod own;
mod word;

use larder_http::fields::cache_status::{Forward, RequestResult};
use larder_listen::Refusal;
use larder_origin::{OriginError, ServerState};
use serde::Serialize;

use crate::before::Before;
use crate::not_stored::NotStored;
pub use word::Word;

/// Words by what they are said of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Words {
    /// How larder came by an answer.
    pub result: Vec<Word>,
    /// Why a request was forwarded.
    pub reason: Vec<Word>,
    /// Why a response was not stored.
    pub not_stored: Vec<Word>,
    /// What a URL was before that was missed.
    pub before: Vec<Word>,
    /// The `detail` in `Cache-Status`: words of its own, and those of `failure` and `not_stored`.
    pub detail: Vec<Word>,
    /// Why an origin gave no answer.
    pub failure: Vec<Word>,
    /// Why a listener refused a request.
    pub refused: Vec<Word>,
    /// How a server of an origin is doing.
    pub server_state: Vec<Word>,
}

/// All words.
pub fn words() -> Words {
    let not_stored: Vec<_> = NotStored::ALL.into_iter().map(own::not_stored).collect();
    let failure: Vec<_> = OriginError::TOKENS.iter().copied().map(failures::of_origin).collect();
    let mut detail = details::own();
    for word in failure.iter().chain(&not_stored) {
        if !detail.iter().any(|known| known.word == word.word) {
            detail.push(word.clone());
        }
    }
    Words {
        result: RequestResult::ALL.into_iter().map(own::result).collect(),
        reason: Forward::ALL.into_iter().map(own::reason).collect(),
        before: Before::EACH.into_iter().map(own::before).collect(),
        refused: Refusal::TOKENS.into_iter().map(failures::refused).collect(),
        server_state: ServerState::ALL.into_iter().map(own::server_state).collect(),
        not_stored,
        detail,
        failure,
    }
}

#[cfg(test)]
mod tests {
    use larder_observe::Label as _;

    use super::*;
    use crate::labels::ForwardLabel;

    fn tokens(words: &[Word]) -> Vec<&'static str> {
        words.iter().map(|word| word.word).collect()
    }

    #[test]
    fn every_word_of_each_enum_is_there_once_in_its_order() {
        let all = words();
        assert_eq!(tokens(&all.result), RequestResult::ALL.map(RequestResult::token));
        assert_eq!(tokens(&all.reason), ForwardLabel::TOKENS);
        assert_eq!(tokens(&all.not_stored), NotStored::TOKENS);
        assert_eq!(tokens(&all.before), Before::TOKENS);
        assert_eq!(tokens(&all.failure), OriginError::TOKENS);
        assert_eq!(tokens(&all.refused), Refusal::TOKENS);
        assert_eq!(tokens(&all.server_state), ServerState::ALL.map(ServerState::token));
        let mut details = tokens(&all.detail);
        for word in all.failure.iter().chain(&all.not_stored) {
            assert!(details.contains(&word.word), "{}", word.word);
        }
        details.sort_unstable();
        let count = details.len();
        details.dedup();
        assert_eq!(details.len(), count);
    }

    /// The words in the first cells of the tables of a section of the guide.
    fn of_the_guide(title: &str) -> Vec<&'static str> {
        let guide = include_str!("../../../../docs/guide/caching.md");
        let section = guide.split("\n## ").find(|section| section.starts_with(title)).unwrap_or_default();
        let table = section.split("| you see |").next().unwrap_or_default();
        let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
        cells.flat_map(|cell| cell.split('`').step_by(2)).filter(|word| !word.trim().is_empty()).collect()
    }

    #[test]
    fn every_detail_of_the_guide_has_its_word() {
        let details = words().detail;
        for title in ["Why is this not cached?", "What went wrong"] {
            let told = of_the_guide(title);
            assert!(told.len() > 20, "{told:?}");
            for word in told.into_iter().filter(|word| *word != "detail") {
                assert!(details.iter().any(|known| known.word == word), "{word}");
            }
        }
    }

    #[test]
    fn each_word_has_a_sentence_of_its_own_group() {
        let all = words();
        let groups = [
            &all.result,
            &all.reason,
            &all.not_stored,
            &all.before,
            &all.detail,
            &all.failure,
            &all.refused,
            &all.server_state,
        ];
        for group in groups {
            let mut sentences: Vec<_> = group.iter().map(|word| word.sentence.to_string()).collect();
            for word in group {
                let sentence = &word.sentence;
                assert!(sentence.len() > 10 && sentence.ends_with(['.', '?']), "{word:?}");
                assert!(
                    sentence.starts_with(|first: char| !first.is_lowercase()
                        || sentence.starts_with("larder")
                        || sentence.starts_with("s-maxage")),
                    "{word:?}"
                );
                assert!(sentence.split(' ').count() <= 45, "{word:?}");
            }
            sentences.sort_unstable();
            sentences.dedup();
            assert_eq!(sentences.len(), group.len(), "{sentences:#?}");
        }
    }
}
