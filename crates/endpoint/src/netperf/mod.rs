//! netperf's protocol: messages of 656 bytes over a control connection.
