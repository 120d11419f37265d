//! sFlow version 5 (sflow.org, "sFlow Version 5", July 2004): flow samples with packet headers.

use super::{Cursor, Holds, Malformed, Session, sampled, walk};
use crate::record::{Format, Other, Record};

/// Samples of a datagram; each has dozens of bytes.
const MOST: u32 = 4096;

impl Session {
    pub(super) fn sflow(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(&Record, &[Other<'_>]),
    ) -> Result<(), Malformed> {
        let mut cursor = Cursor(bytes);
        if cursor.u32()? != 5 {
            return Err(Malformed);
        }
        let agent = match cursor.u32()? {
            1 => 4,
            2 => 16,
            _ => return Err(Malformed),
        };
        cursor.take(agent)?;
        let (domain, number, uptime, samples) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
        if samples > MOST {
            return Err(Malformed);
        }
        self.follow((Format::Sflow, domain), number, Holds::of(1).up(uptime));
        for _ in 0..samples {
            let (kind, length) = (cursor.u32()?, cursor.u32()?);
            let sample = Cursor(cursor.take(length as usize)?);
            // Of sFlow itself: flow samples, and those with longer numbers; counters are none of ours.
            match kind {
                1 => self.flow_sample(sample, false, domain, each)?,
                3 => self.flow_sample(sample, true, domain, each)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn flow_sample(
        &mut self,
        mut sample: Cursor<'_>,
        expanded: bool,
        domain: u32,
        each: &mut impl FnMut(&Record, &[Other<'_>]),
    ) -> Result<(), Malformed> {
        let _number = sample.u32()?;
        sample.take(if expanded { 8 } else { 4 })?;
        let (rate, _pool, _drops) = (sample.u32()?, sample.u32()?, sample.u32()?);
        // The format of an interface, then its number; together in one word where they are short.
        let mut interface = || -> Result<u32, Malformed> {
            if expanded {
                sample.u32()?;
                return sample.u32();
            }
            Ok(sample.u32()? & 0x3fff_ffff)
        };
        let interfaces = [interface()?, interface()?];
        let records = sample.u32()?;
        if records > MOST {
            return Err(Malformed);
        }
        for _ in 0..records {
            let (kind, length) = (sample.u32()?, sample.u32()?);
            let mut body = Cursor(sample.take(length as usize)?);
            // A padded length: XDR has words of four bytes.
            if kind != 1 {
                continue;
            }
            let (protocol, frame, stripped, header) = (body.u32()?, body.u32()?, body.u32()?, body.u32()?);
            let header = body.take(header as usize)?;
            // 1 is Ethernet.
            if protocol != 1 {
                continue;
            }
            let blank = Record { interfaces, ..Record::blank(Format::Sflow, domain, 0, rate.max(1)) };
            let length = (frame.saturating_sub(stripped) as usize).max(header.len());
            let walk = self.walk.get_or_insert_with(walk);
            if let Some(record) = sampled(walk, header, length, blank) {
                self.counters.records += 1;
                each(&record, &[]);
            }
        }
        Ok(())
    }
}
