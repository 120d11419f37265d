//! Rings shared with the kernel: one side writes entries and moves `producer`, the other reads them and moves
//! `consumer`.
//!
//! ```text
//!            consumer                    producer
//!               v                           v
//!   | 6 | 7 |   | 0 | 1 | 2 | 3 | 4 | 5 |     entry number & mask
//!     free        filled, to be read      free
//! ```
//!
//! Both cursors count entries since the ring was made and wrap at 2^32, so all arithmetic on them wraps; a run of
//! three minutes at line rate gets there. A ring is any memory of that layout: tests use their own, and play the
//! kernel on the other side.
//!
//! Order: the entry is written before `producer` is stored with release; the other side loads `producer` with
//! acquire before it reads the entry, and stores `consumer` with release after. (`net/xdp/xsk_queue.h` has the twin.)
#![allow(
    unsafe_code,
    reason = "the cursors and entries are raw memory that the kernel reads and writes, too"
)]

use std::any::Any;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Where the parts of a ring stand in its memory.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub producer: usize,
    pub consumer: usize,
    /// Where the kernel asks to be woken; kernels before 5.4 have no such word.
    pub flags: Option<usize>,
    pub entries: usize,
    /// How many entries: a power of two.
    pub size: u32,
}

const NEED_WAKEUP: u32 = libc::XDP_RING_NEED_WAKEUP;

/// What both sides need.
#[derive(Debug)]
struct Shared<T> {
    base: NonNull<u8>,
    layout: Layout,
    /// Holds the memory for as long as this is in use.
    _memory: Arc<dyn Any + Send + Sync>,
    _entries: PhantomData<T>,
}

impl<T: Copy> Shared<T> {
    fn cursor(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: `new` demanded that an aligned u32 stands at the offset for as long as `_memory` is held, and that
        // everybody accesses it atomically.
        unsafe { AtomicU32::from_ptr(self.base.add(offset).cast().as_ptr()) }
    }

    fn producer(&self) -> &AtomicU32 {
        self.cursor(self.layout.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.cursor(self.layout.consumer)
    }

    fn entry(&self, position: u32) -> NonNull<T> {
        let index = (position & (self.layout.size - 1)) as usize;
        // SAFETY: the index is below `size`, and `new` demanded that so many entries stand there.
        unsafe { self.base.add(self.layout.entries).cast::<T>().add(index) }
    }
}

/// The side that fills a ring.
#[derive(Debug)]
pub struct Producer<T> {
    shared: Shared<T>,
    /// Position of the next entry: ahead of what was published.
    next: u32,
    /// The other side's position when last looked at.
    seen: u32,
}

// SAFETY: the memory is not bound to a thread, and only this value uses this side of the ring.
unsafe impl<T: Send> Send for Producer<T> {}

impl<T: Copy> Producer<T> {
    /// The producing side of a ring.
    ///
    /// # Safety
    /// For as long as `memory` is held, a ring of that layout must stand at `base`: aligned u32 cursors that everyone
    /// accesses atomically, `size` aligned entries of type `T` valid for any bytes, and `size` a power of two. Nobody
    /// else may produce, and the other side must keep to the protocol of this module.
    pub unsafe fn new(base: NonNull<u8>, layout: Layout, memory: Arc<dyn Any + Send + Sync>) -> Producer<T> {
        let shared = Shared { base, layout, _memory: memory, _entries: PhantomData };
        let next = shared.producer().load(Ordering::Relaxed);
        let seen = shared.consumer().load(Ordering::Acquire);
        Producer { shared, next, seen }
    }

    /// Is there room for so many?
    pub fn has_room(&mut self, count: u32) -> bool {
        let room = |producer: &Self| producer.shared.layout.size - producer.next.wrapping_sub(producer.seen);
        if room(self) < count {
            self.seen = self.consumed();
        }
        room(self) >= count
    }

    /// Writes an entry, which the other side sees after [`Producer::publish`]. False if there is no room.
    pub fn push(&mut self, entry: T) -> bool {
        if !self.has_room(1) {
            return false;
        }
        // SAFETY: there is room, so the other side does not read this entry until it is published.
        unsafe { self.shared.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Lets the other side see what was written.
    pub fn publish(&mut self) {
        self.shared.producer().store(self.next, Ordering::Release);
    }

    /// The position up to which the other side has read.
    pub fn consumed(&self) -> u32 {
        self.shared.consumer().load(Ordering::Acquire)
    }

    /// The position of the next entry.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Goes back to `position` to write anew what stands from there. Only for entries that the other side has not
    /// read, and only while it does not run; what is published then must not end before what was.
    pub fn rewind(&mut self, position: u32) {
        self.next = position;
    }

    /// Does the other side wait to be woken? Ask after [`Producer::publish`].
    pub fn needs_wakeup(&self) -> bool {
        // The flag must not be read before the producer's store is out: the other side sets it, looks at the producer
        // once more, and sleeps.
        fence(Ordering::SeqCst);
        match self.shared.layout.flags {
            Some(offset) => self.shared.cursor(offset).load(Ordering::Relaxed) & NEED_WAKEUP != 0,
            None => true,
        }
    }
}

/// The side that empties a ring.
#[derive(Debug)]
pub struct Consumer<T> {
    shared: Shared<T>,
    next: u32,
    /// The other side's position when last looked at.
    seen: u32,
}

// SAFETY: as for the producer.
unsafe impl<T: Send> Send for Consumer<T> {}

impl<T: Copy> Consumer<T> {
    /// The consuming side of a ring.
    ///
    /// # Safety
    /// As for [`Producer::new`], with the sides exchanged.
    pub unsafe fn new(base: NonNull<u8>, layout: Layout, memory: Arc<dyn Any + Send + Sync>) -> Consumer<T> {
        let shared = Shared { base, layout, _memory: memory, _entries: PhantomData };
        let next = shared.consumer().load(Ordering::Relaxed);
        let seen = shared.producer().load(Ordering::Acquire);
        Consumer { shared, next, seen }
    }

    /// The next entry, if there is one. The other side gets its room back with [`Consumer::release`].
    pub fn pop(&mut self) -> Option<T> {
        if self.next == self.seen {
            self.seen = self.shared.producer().load(Ordering::Acquire);
            if self.next == self.seen {
                return None;
            }
        }
        // SAFETY: the entry was published, and is not written again until it is released.
        let entry = unsafe { self.shared.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Gives the room of all entries popped back.
    pub fn release(&mut self) {
        self.shared.consumer().store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// A ring in ordinary memory, as the kernel lays one out, whose cursors stand at `start`.
    fn ring(size: u32, start: u32) -> (Producer<u64>, Consumer<u64>) {
        let layout = Layout { producer: 0, consumer: 64, flags: Some(128), entries: 192, size };
        // The one pointer that all of the memory is reached by, as the kernel's mapping is.
        let words = Box::into_raw(vec![0_u64; 24 + size as usize].into_boxed_slice());
        let base = NonNull::new(words.cast::<u8>()).expect("the memory of a box");
        let memory: Arc<dyn Any + Send + Sync> = Arc::new(Words(words));
        // SAFETY: the memory is as long and as aligned as the layout says, lives in the `Arc`, and each side is used
        // once.
        unsafe {
            AtomicU32::from_ptr(base.cast().as_ptr()).store(start, Ordering::Relaxed);
            AtomicU32::from_ptr(base.add(64).cast().as_ptr()).store(start, Ordering::Relaxed);
            (Producer::new(base, layout, Arc::clone(&memory)), Consumer::new(base, layout, memory))
        }
    }

    /// Memory of which only raw pointers are used while it is shared.
    struct Words(*mut [u64]);

    // SAFETY: only the rings use the memory; this value frees it.
    unsafe impl Send for Words {}
    // SAFETY: as above.
    unsafe impl Sync for Words {}

    impl Drop for Words {
        fn drop(&mut self) {
            // SAFETY: from `Box::into_raw`, and freed once.
            drop(unsafe { Box::from_raw(self.0) });
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push(u8),
        Publish,
        Pop(u8),
        Release,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (1..12_u8).prop_map(Step::Push),
            Just(Step::Publish),
            (1..12_u8).prop_map(Step::Pop),
            Just(Step::Release)
        ];
        prop::collection::vec(step, 1..200)
    }

    proptest! {
        #[test]
        fn a_ring_is_a_queue_of_limited_length(
            steps in steps(),
            log in 0..6_u32,
            start in prop_oneof![Just(0_u32), Just(u32::MAX - 7), any::<u32>()],
        ) {
            let size = 1 << log;
            let (mut producer, mut consumer) = ring(size, start);
            // Entries as the plain definition has them: written, seen by the consumer, read but not given back.
            let (mut written, mut seen, mut read) = (VecDeque::new(), VecDeque::new(), 0);
            let mut value = 0;
            for step in steps {
                match step {
                    Step::Push(count) => for _ in 0..count {
                        let full = written.len() + seen.len() + read == size as usize;
                        prop_assert_eq!(producer.push(value), !full);
                        if !full {
                            written.push_back(value);
                        }
                        value += 1;
                    },
                    Step::Publish => {
                        producer.publish();
                        seen.append(&mut written);
                    }
                    Step::Pop(count) => for _ in 0..count {
                        let expected = seen.pop_front();
                        prop_assert_eq!(consumer.pop(), expected);
                        read += usize::from(expected.is_some());
                    },
                    Step::Release => {
                        consumer.release();
                        read = 0;
                    }
                }
            }
        }

        #[test]
        fn what_is_written_anew_replaces_what_was_not_read(start in any::<u32>(), read in 0..4_u32) {
            let (mut producer, mut consumer) = ring(16, start);
            (0..4).for_each(|value| assert!(producer.push(value)));
            producer.publish();
            (0..read).for_each(|value| assert_eq!(consumer.pop(), Some(u64::from(value))));
            consumer.release();
            producer.rewind(producer.consumed());
            (10..20).for_each(|value| assert!(producer.push(value)));
            producer.publish();
            // A consumer that had already looked at the producer sees the new entries all the same.
            prop_assert_eq!(std::iter::from_fn(|| consumer.pop()).collect::<Vec<_>>(), (10..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn two_threads_exchange_a_million_entries_in_order() {
        // Miri takes some milliseconds for each (scripts/miri, which tries several orders of the threads' steps).
        const COUNT: u64 = if cfg!(miri) { 500 } else { 1_000_000 };
        let (mut producer, mut consumer) = ring(64, u32::MAX - 1000);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut value = 0;
                while value < COUNT {
                    while value < COUNT && producer.push(value) {
                        value += 1;
                    }
                    producer.publish();
                    std::thread::yield_now();
                }
            });
            let mut expected = 0;
            while expected < COUNT {
                while let Some(value) = consumer.pop() {
                    assert_eq!(value, expected);
                    expected += 1;
                }
                consumer.release();
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn the_wake_up_flag_is_the_kernels() {
        let (producer, _consumer) = ring(4, 0);
        assert!(!producer.needs_wakeup());
        producer.shared.cursor(128).store(NEED_WAKEUP, Ordering::Relaxed);
        assert!(producer.needs_wakeup());
    }
}
