//! What a key means, by what is on the screen.
//!
//! In: a key as the terminal sent it, and whether a list, a line that is typed, a pane or a question has the keys. Out: an action, or none.
//! Pure: nothing is done here. Deliberately absent: the mouse, and keys that one could set.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::tab::TopTab;

/// What has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyFocus {
    List,
    /// A filter is typed.
    Line,
    /// A text lies over the list.
    Pane,
    /// Whether to purge.
    Question,
}

/// How far a list or a text is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopMove {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

/// What is wished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopAction {
    Quit,
    Suspend,
    Repaint,
    Show(TopTab),
    NextTab,
    PreviousTab,
    Move(TopMove),
    Filter,
    Sort,
    Stop,
    Explain,
    Purge,
    Beside,
    Window,
    Help,
    Close,
    Confirm,
    Type(char),
    Erase,
    EraseAll,
    Accept,
}

/// The action of a key.
pub(super) fn action(key: KeyEvent, focus: KeyFocus) -> Option<TopAction> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(TopAction::Quit),
            KeyCode::Char('z') => Some(TopAction::Suspend),
            KeyCode::Char('l') => Some(TopAction::Repaint),
            KeyCode::Char('u') if focus == KeyFocus::Line => Some(TopAction::EraseAll),
            _ => None,
        };
    }
    match focus {
        KeyFocus::List => in_list(key.code),
        KeyFocus::Line => in_line(key.code),
        KeyFocus::Pane => in_pane(key.code),
        KeyFocus::Question => in_question(key.code),
    }
}

fn moved(code: KeyCode) -> Option<TopAction> {
    Some(TopAction::Move(match code {
        KeyCode::Up | KeyCode::Char('k') => TopMove::Up,
        KeyCode::Down | KeyCode::Char('j') => TopMove::Down,
        KeyCode::PageUp => TopMove::PageUp,
        KeyCode::PageDown => TopMove::PageDown,
        KeyCode::Home => TopMove::First,
        KeyCode::End => TopMove::Last,
        _ => return None,
    }))
}

fn in_list(code: KeyCode) -> Option<TopAction> {
    Some(match code {
        KeyCode::Char('q') => TopAction::Quit,
        KeyCode::Char(digit @ '1'..='8') => TopAction::Show(TopTab::of_digit(digit)?),
        KeyCode::Tab | KeyCode::Right => TopAction::NextTab,
        KeyCode::BackTab | KeyCode::Left => TopAction::PreviousTab,
        KeyCode::Char('/') => TopAction::Filter,
        KeyCode::Char('s') => TopAction::Sort,
        KeyCode::Char(' ') => TopAction::Stop,
        KeyCode::Enter => TopAction::Explain,
        KeyCode::Char('d') => TopAction::Purge,
        KeyCode::Char('h') => TopAction::Beside,
        KeyCode::Char('w') => TopAction::Window,
        KeyCode::Char('?') | KeyCode::F(1) => TopAction::Help,
        KeyCode::Esc => TopAction::Close,
        code => return moved(code),
    })
}

fn in_line(code: KeyCode) -> Option<TopAction> {
    Some(match code {
        KeyCode::Enter => TopAction::Accept,
        KeyCode::Esc => TopAction::Close,
        KeyCode::Backspace => TopAction::Erase,
        KeyCode::Char(character) => TopAction::Type(character),
        _ => return None,
    })
}

fn in_pane(code: KeyCode) -> Option<TopAction> {
    match code {
        KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | '?') => Some(TopAction::Close),
        KeyCode::Char('d') => Some(TopAction::Purge),
        code => moved(code),
    }
}

/// Only `y` says yes; what else is pressed by accident says no.
const fn in_question(code: KeyCode) -> Option<TopAction> {
    match code {
        KeyCode::Char('y') => Some(TopAction::Confirm),
        _ => Some(TopAction::Close),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(focus: KeyFocus, code: KeyCode, expected: Option<TopAction>) {
        assert_eq!(action(KeyEvent::from(code), focus), expected, "{focus:?} {code:?}");
    }

    #[test]
    fn each_key_of_a_list_has_its_action() {
        let list = |code, expected| check(KeyFocus::List, code, Some(expected));
        list(KeyCode::Char('q'), TopAction::Quit);
        list(KeyCode::Char('1'), TopAction::Show(TopTab::Overview));
        list(KeyCode::Char('8'), TopAction::Show(TopTab::Events));
        list(KeyCode::Tab, TopAction::NextTab);
        list(KeyCode::BackTab, TopAction::PreviousTab);
        list(KeyCode::Char('/'), TopAction::Filter);
        list(KeyCode::Char('s'), TopAction::Sort);
        list(KeyCode::Char(' '), TopAction::Stop);
        list(KeyCode::Enter, TopAction::Explain);
        list(KeyCode::Char('d'), TopAction::Purge);
        list(KeyCode::Char('h'), TopAction::Beside);
        list(KeyCode::Char('w'), TopAction::Window);
        list(KeyCode::Char('?'), TopAction::Help);
        list(KeyCode::PageDown, TopAction::Move(TopMove::PageDown));
        list(KeyCode::Up, TopAction::Move(TopMove::Up));
        check(KeyFocus::List, KeyCode::Char('9'), None);
        check(KeyFocus::List, KeyCode::Char('y'), None);
    }

    #[test]
    fn what_is_typed_is_text_and_not_an_action() {
        for character in ['q', 'd', '1', '/', ' ', '?'] {
            check(KeyFocus::Line, KeyCode::Char(character), Some(TopAction::Type(character)));
        }
        check(KeyFocus::Line, KeyCode::Enter, Some(TopAction::Accept));
        check(KeyFocus::Line, KeyCode::Up, None);
    }

    #[test]
    fn only_y_confirms_and_every_other_key_closes_the_question() {
        check(KeyFocus::Question, KeyCode::Char('y'), Some(TopAction::Confirm));
        for code in [KeyCode::Esc, KeyCode::Enter, KeyCode::Char('n'), KeyCode::Char('Y'), KeyCode::Char('d')]
        {
            check(KeyFocus::Question, code, Some(TopAction::Close));
        }
        for focus in [KeyFocus::List, KeyFocus::Line, KeyFocus::Pane] {
            assert_ne!(action(KeyEvent::from(KeyCode::Char('y')), focus), Some(TopAction::Confirm));
        }
    }

    #[test]
    fn control_keys_end_it_everywhere_and_no_other_one_is_a_letter() {
        for focus in [KeyFocus::List, KeyFocus::Line, KeyFocus::Pane, KeyFocus::Question] {
            let control = |letter| action(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL), focus);
            assert_eq!(control('c'), Some(TopAction::Quit));
            assert_eq!(control('z'), Some(TopAction::Suspend));
            assert_eq!(control('d'), None);
            assert_eq!(control('y'), None);
        }
        let mut released = KeyEvent::from(KeyCode::Char('q'));
        released.kind = KeyEventKind::Release;
        assert_eq!(action(released, KeyFocus::List), None);
    }

    #[test]
    fn a_pane_is_closed_and_moved() {
        check(KeyFocus::Pane, KeyCode::Char('q'), Some(TopAction::Close));
        check(KeyFocus::Pane, KeyCode::Esc, Some(TopAction::Close));
        check(KeyFocus::Pane, KeyCode::Down, Some(TopAction::Move(TopMove::Down)));
        check(KeyFocus::Pane, KeyCode::Char('1'), None);
    }
}
