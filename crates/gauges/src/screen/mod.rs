//! The full-screen view: a thread that draws what stands on the board and reads keys.
//!
//! It draws on standard error, so that the result can go to a file, and gives the terminal back whatever happens:
//! when it is dropped, when any thread panics, and when a second signal ends the process at once. Only SIGKILL leaves
//! the terminal as it is (`reset` mends it).

mod draw;
mod view;

use crate::{GaugesError, dumb_terminal};
use draw::Manner;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::{cursor, execute, terminal};
use ratatui::text::Text;
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGCONT, SIGTSTP};
use signal_hook::iterator::Signals;
use snapshot::{Board, Snapshot};
use std::io::{self, IsTerminal, Stderr, stderr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Once};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use view::{Key, View};

/// How often it is drawn when no key is pressed.
const REDRAW: Duration = Duration::from_millis(250);
/// How often it looks for keys and signals; so long is the end held up.
const LOOK: Duration = Duration::from_millis(40);
/// A terminal that takes no text for so long (a connection that hangs) is not waited for at the end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Drawn on right now; whoever finds it so gives the terminal back.
static TAKEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// Is the terminal drawn on now? Nothing else may be written to it then.
pub fn is_drawn() -> bool {
    TAKEN.load(Relaxed)
}

/// Can there be a screen?
///
/// # Errors
/// Why there can be none.
pub fn check() -> Result<(), GaugesError> {
    if !stderr().is_terminal() {
        return Err(GaugesError::NotATerminal);
    }
    match dumb_terminal() {
        Some(term) => Err(GaugesError::DumbTerminal(term)),
        None => Ok(()),
    }
}

fn take() -> io::Result<()> {
    terminal::enable_raw_mode()?;
    TAKEN.store(true, Relaxed);
    // ratatui takes for granted that it is empty.
    let clear = terminal::Clear(terminal::ClearType::All);
    execute!(stderr(), terminal::EnterAlternateScreen, clear, cursor::Hide)
}

fn give_back() {
    if TAKEN.swap(false, Relaxed) {
        let _ = execute!(stderr(), terminal::LeaveAlternateScreen, cursor::Show);
        let _ = terminal::disable_raw_mode();
    }
}

/// The terminal while it is drawn on.
#[derive(Debug)]
pub struct Screen {
    thread: Option<JoinHandle<()>>,
    end: Arc<AtomicBool>,
}

impl Screen {
    /// `stop` is set when the user or a signal wants the run to end.
    ///
    /// # Errors
    /// That the terminal cannot be drawn on, or no thread can be started.
    pub fn start(board: Arc<Board>, stop: Arc<AtomicBool>) -> Result<Screen, GaugesError> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |what| {
                give_back();
                before(what);
            }));
        });
        let failed = |what| move |error| GaugesError::Io(what, error);
        let caught = crate::ending_signals().into_iter().chain([SIGTSTP, SIGCONT]);
        let signals = Signals::new(caught).map_err(failed("catching signals"))?;
        take().inspect_err(|_| give_back()).map_err(failed("preparing the terminal"))?;
        let end = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&end);
        let thread = std::thread::Builder::new().name("screen".to_owned()).spawn(move || {
            // A terminal that is gone: what SIGHUP means, to those that it is sent to. One that merely hangs is no error.
            if show(&board, &stop, &own, signals).is_err() {
                give_back();
                if !crate::signals::outlives_the_terminal() {
                    stop.store(true, Relaxed);
                }
            }
        });
        let thread = thread.inspect_err(|_| give_back()).map_err(failed("starting a thread"))?;
        Ok(Screen { thread: Some(thread), end })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.end.store(true, Relaxed);
        let since = Instant::now();
        if let Some(thread) = self.thread.take() {
            while !thread.is_finished() && since.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(2));
            }
            if !thread.is_finished() {
                // Writing to it would hang as well, and what a terminal's modes are is not written.
                TAKEN.store(false, Relaxed);
                let _ = terminal::disable_raw_mode();
                return;
            }
            let _ = thread.join();
        }
        give_back();
    }
}

/// Ends the process at once, as a second signal does without a screen.
fn leave() -> ! {
    give_back();
    std::process::exit(130)
}

fn manner() -> Manner {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    // The first of these that is set decides (locale(7)).
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
    let locale = locale.to_string_lossy().to_ascii_lowercase();
    Manner {
        // https://no-color.org
        colour: set("NO_COLOR").is_none(),
        unicode: locale.contains("utf-8") || locale.contains("utf8"),
    }
}

fn show(board: &Board, stop: &AtomicBool, end: &AtomicBool, mut signals: Signals) -> io::Result<()> {
    crate::give_way();
    let mut terminal = Terminal::new(CrosstermBackend::new(stderr()))?;
    let manner = manner();
    let mut view = View::default();
    let mut latest: Option<Arc<Snapshot>> = None;
    let mut drawn: Option<Instant> = None;
    let mut asked = 0;
    // A panic somewhere else has taken the terminal away.
    while !end.load(Relaxed) && TAKEN.load(Relaxed) {
        for signal in signals.pending() {
            match signal {
                SIGTSTP | SIGCONT => {
                    if signal == SIGTSTP {
                        stop_as_a_job();
                    }
                    // Whoever had the terminal meanwhile has left something on it.
                    take()?;
                    terminal = Terminal::new(CrosstermBackend::new(stderr()))?;
                    drawn = None;
                    continue;
                }
                _ => asked += 1,
            }
            if asked > 1 {
                leave();
            }
            stop.store(true, Relaxed);
            view.quitting = true;
        }
        // What is gone is readable for ever, and has nothing: whoever waited for keys would never wait.
        if is_gone() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut changed = false;
        if event::poll(LOOK)? {
            changed = true;
            if let Event::Key(key) = event::read()? {
                if with_control(key, 'z') {
                    // To the whole job, as the terminal would: `netdyno lab -- netdyno ...` is one of two processes.
                    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
                } else if with_control(key, 'c') {
                    asked += 1;
                    if asked > 1 {
                        leave();
                    }
                    view.press(Key::Quit);
                } else if let Some(request) = meaning(key).and_then(|key| view.press(key)) {
                    board.request(request);
                }
                if view.quitting {
                    stop.store(true, Relaxed);
                }
            }
        }
        if let Some(moment) = board.latest()
            && !latest.as_ref().is_some_and(|latest| Arc::ptr_eq(latest, &moment))
        {
            let phase = latest.as_ref().map(|latest| (latest.phase, latest.percent));
            changed |= phase != Some((moment.phase, moment.percent));
            latest = Some(Arc::clone(&moment));
            view.update(moment);
        }
        if changed || drawn.is_none_or(|at| at.elapsed() >= REDRAW) {
            drawn = Some(Instant::now());
            paint(&mut terminal, &view, manner)?;
        }
    }
    Ok(())
}

/// Whether the terminal that is drawn on, or that keys come from, was closed.
fn is_gone() -> bool {
    let closed = |fd: &dyn std::os::fd::AsFd| {
        let fd = fd.as_fd();
        let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).is_ok()
            && polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
    };
    closed(&stderr()) || io::stdin().is_terminal() && closed(&io::stdin())
}

fn paint(terminal: &mut Terminal<CrosstermBackend<Stderr>>, view: &View, manner: Manner) -> io::Result<()> {
    terminal.draw(|frame| {
        let area = frame.area();
        let lines = draw::draw(view, manner, area.width.into(), area.height.into());
        frame.render_widget(Text::from(lines), area);
    })?;
    Ok(())
}

/// Stops the process as SIGTSTP does, with the terminal as it was, until it is continued. Not where no shell looks after
/// jobs (the session's own process group): nobody would continue it.
fn stop_as_a_job() {
    if rustix::process::getsid(None).is_ok_and(|session| session == rustix::process::getpgrp()) {
        return;
    }
    give_back();
    let _ = signal_hook::low_level::raise(signal_hook::consts::SIGSTOP);
}

fn with_control(key: KeyEvent, letter: char) -> bool {
    key.code == KeyCode::Char(letter) && key.modifiers.contains(KeyModifiers::CONTROL)
}

fn meaning(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release
        || key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
    {
        return None;
    }
    Some(match key.code {
        KeyCode::Char('q' | 'Q') => Key::Quit,
        KeyCode::Char(' ' | 'p') => Key::Pause,
        KeyCode::Char('+' | '=') => Key::Faster,
        KeyCode::Char('-' | '_') => Key::Slower,
        KeyCode::Char('0') => Key::AsAsked,
        KeyCode::Char('?' | 'h') => Key::Help,
        KeyCode::Esc => Key::Back,
        KeyCode::Char('s') => Key::Order,
        KeyCode::Down | KeyCode::Char('j') => Key::Down(1),
        KeyCode::Up | KeyCode::Char('k') => Key::Up(1),
        KeyCode::PageDown => Key::Down(5),
        KeyCode::PageUp => Key::Up(5),
        KeyCode::Home => Key::Top,
        _ => return None,
    })
}
