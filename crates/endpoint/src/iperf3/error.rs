//! What can go wrong between two peers, and the numbers by which servers say it.

use thiserror::Error;

/// Why a test did not come to its end. Words that iperf3 has for it are kept, because scripts look for them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// The server serves one client at a time, and another is there.
    #[error("the server is busy running a test. try again later")]
    Busy,
    /// The connection ended between two steps.
    #[error("control socket has closed unexpectedly")]
    Closed,
    /// A byte that is no state, or one that does not belong here.
    #[error("received an unknown control message (ensure other side is iperf3 and not iperf): {0}")]
    Unexpected(String),
    /// The server was ended.
    #[error("the server has terminated")]
    ServerTerminated,
    /// The client was ended.
    #[error("the client has terminated")]
    ClientTerminated,
    /// The first bytes of a connection are no cookie.
    #[error("unable to receive cookie at server: it is not iperf3's")]
    Cookie,
    /// The parameters cannot be what is said.
    #[error("unable to receive parameters from client: {0}")]
    Params(String),
    /// The results cannot be what is said.
    #[error("unable to receive results: {0}")]
    Results(String),
    /// Something took longer than it may.
    #[error("{0}: nothing came within {1} seconds")]
    Late(&'static str, u64),
    /// What the server said.
    #[error("{}", said(*.0, *.1))]
    Server(i32, i32),
    /// A server's buffers are taken by others' tests.
    #[error("{0}")]
    NoRoom(String),
    /// Of this side, for which the other is told a number.
    #[error("{1}")]
    Refused(Code, String),
}

/// Numbers of SERVER_ERROR that netdyno's server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// More than the server's limit of rates.
    TotalRate = 27,
    /// Longer than the server allows.
    Duration = 37,
    /// Parameters could not be understood.
    Params = 114,
    /// A congestion control that is not there.
    Congestion = 134,
    /// Not who may test here.
    Authorization = 142,
    /// No data for too long.
    NoMessage = 144,
    /// The test takes longer than it may.
    Expired = 160,
    /// A stream could not be made.
    CreateStream = 200,
    /// A socket could not be set as asked.
    InitStream = 201,
}

/// What numbers mean, in iperf3's words for those that users see.
const NUMBERS: [(i32, &str); 22] = [
    (25, "cannot be both reverse and bidirectional"),
    (27, "total required bandwidth is larger than server limit"),
    (37, "client's requested duration exceeds the server's maximum permitted limit"),
    (106, "unable to receive cookie at server"),
    (109, "control socket has closed unexpectedly"),
    (114, "unable to receive parameters from client"),
    (117, "unable to receive results"),
    (122, "unable to set TCP/SCTP NODELAY"),
    (123, "unable to set TCP/SCTP MSS"),
    (124, "unable to set socket buffer size"),
    (125, "unable to set IP TOS"),
    (127, "unable to set IPv6 flow label"),
    (133, "unable to become a daemon"),
    (134, "unable to set TCP_CONGESTION"),
    (140, "unable to set socket pacing"),
    (141, "socket buffer size not set correctly"),
    (142, "test authorization failed"),
    (144, "idle timeout for receiving data"),
    (160, "server test duration expired"),
    (200, "unable to create a new stream"),
    (201, "unable to initialize stream"),
    (206, "unable to read from stream socket"),
];

fn said(number: i32, errno: i32) -> String {
    let what = NUMBERS.iter().find(|(known, _)| *known == number);
    let what = what.map_or_else(|| format!("error {number}"), |(_, words)| (*words).to_owned());
    match errno {
        0 => format!("the server says: {what}"),
        _ => format!("the server says: {what}: {}", std::io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_numbers_become_words() {
        assert_eq!(Error::Server(142, 0).to_string(), "the server says: test authorization failed");
        assert_eq!(
            Error::Server(201, 12).to_string(),
            "the server says: unable to initialize stream: Cannot allocate memory (os error 12)"
        );
        assert!(Error::Server(200, 98).to_string().contains("new stream: Address already in use"));
        assert_eq!(Error::Server(9999, 0).to_string(), "the server says: error 9999");
    }
}
