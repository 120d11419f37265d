//! Things by number, in pieces that are never moved: a vector that doubles would need room for half as many again.

/// Things in one piece.
const PIECE: usize = 1024;

/// Numbers are used again when their things are gone.
#[derive(Debug)]
pub struct Slab<T> {
    pieces: Vec<Vec<Option<T>>>,
    free: Vec<u32>,
    count: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { pieces: Vec::new(), free: Vec::new(), count: 0 }
    }
}

impl<T> Slab<T> {
    /// Takes one in; its number.
    pub fn insert(&mut self, thing: T) -> u32 {
        self.count += 1;
        if let Some(number) = self.free.pop()
            && let Some(place) = self.place(number)
        {
            *place = Some(thing);
            return number;
        }
        if self.pieces.last().is_none_or(|piece| piece.len() == PIECE) {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        let before = (self.pieces.len() - 1) * PIECE;
        let Some(piece) = self.pieces.last_mut() else { return u32::MAX };
        piece.push(Some(thing));
        (before + piece.len() - 1) as u32
    }

    fn place(&mut self, number: u32) -> Option<&mut Option<T>> {
        self.pieces.get_mut(number as usize / PIECE)?.get_mut(number as usize % PIECE)
    }

    /// The thing with this number.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.pieces.get(number as usize / PIECE)?.get(number as usize % PIECE)?.as_ref()
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.place(number)?.as_mut()
    }

    /// Takes one out.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let thing = self.place(number)?.take()?;
        self.free.push(number);
        self.count -= 1;
        Some(thing)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The numbers of all.
    pub fn numbers(&self) -> Vec<u32> {
        let all = self.pieces.iter().flatten().enumerate();
        all.filter(|(_, thing)| thing.is_some()).map(|(number, _)| number as u32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_and_things_stay_where_they_are() {
        let mut slab = Slab::default();
        let numbers: Vec<u32> = (0..3000).map(|thing| slab.insert(thing)).collect();
        assert!(numbers.iter().enumerate().all(|(at, number)| slab.get(*number) == Some(&at)));
        assert_eq!((slab.remove(7), slab.remove(7), slab.len()), (Some(7), None, 2999));
        assert_eq!((slab.insert(9), slab.get(7), slab.get(3000)), (7, Some(&9), None));
        assert_eq!(slab.numbers().len(), 3000);
    }
}
