//! The bytes that client and server tell each other what comes next with.

/// What a byte on the control connection says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Data is about to be sent: streams are there.
    TestStart,
    /// Data is sent from now on.
    TestRunning,
    /// The client is done sending, or receiving.
    TestEnd,
    /// The client may send its parameters.
    ParamExchange,
    /// The client may open its streams.
    CreateStreams,
    /// The server ends the test before its time.
    ServerTerminate,
    /// The client ends the test before its time.
    ClientTerminate,
    /// The client may send its results, and gets the server's.
    ExchangeResults,
    /// Results were exchanged.
    DisplayResults,
    /// Not sent by any release known.
    IperfStart,
    /// The client is done.
    IperfDone,
    /// The server serves somebody else.
    AccessDenied,
    /// The server cannot go on; two numbers follow.
    ServerError,
}

impl State {
    const ALL: [(State, i8); 13] = [
        (State::TestStart, 1),
        (State::TestRunning, 2),
        (State::TestEnd, 4),
        (State::ParamExchange, 9),
        (State::CreateStreams, 10),
        (State::ServerTerminate, 11),
        (State::ClientTerminate, 12),
        (State::ExchangeResults, 13),
        (State::DisplayResults, 14),
        (State::IperfStart, 15),
        (State::IperfDone, 16),
        (State::AccessDenied, -1),
        (State::ServerError, -2),
    ];

    /// As it goes over the wire.
    pub fn byte(self) -> u8 {
        // Every state stands in the table.
        State::ALL.iter().find(|(state, _)| *state == self).map_or(0, |(_, byte)| byte.cast_unsigned())
    }

    /// Of a byte from a peer.
    pub fn of(byte: u8) -> Option<State> {
        State::ALL.iter().find(|(_, known)| known.cast_unsigned() == byte).map(|(state, _)| *state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_states_are_one_to_one() {
        let known: Vec<State> = (0..=255).filter_map(State::of).collect();
        assert_eq!(known.len(), State::ALL.len());
        assert!(known.iter().all(|state| State::of(state.byte()) == Some(*state)));
        assert_eq!((State::AccessDenied.byte(), State::ServerError.byte()), (0xff, 0xfe));
        assert_eq!(State::of(3), None);
    }
}
