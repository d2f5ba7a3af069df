//! Reads columns of numbers with nulls. A file stores the values without nulls, one after the other, and each
//! value must be moved to the position of its row. Parquet's own reader moves one value at a time; here 64
//! rows are moved at a time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayData, ArrayRef, BooleanBufferBuilder, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, DataType as ArrowType};
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{DataType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::ColumnDescriptor;

use super::levels::Levels;

type Result<T> = std::result::Result<T, ParquetError>;

/// Number of rows that are moved at a time, one for each bit of a word.
const WORD: usize = 64;

/// A column chunk that is read from its first row to its last.
pub trait Column: Send {
    /// Skips rows, and returns how many: fewer at the end of the chunk.
    fn skip(&mut self, rows: usize) -> Result<usize>;
    /// Reads the next rows for `take`, and returns how many: fewer at the end of the chunk.
    fn read(&mut self, rows: usize) -> Result<usize>;
    /// Returns the rows that were read since the last call.
    fn take(&mut self) -> Result<ArrayRef>;
}

/// True if a column chunk is read here: numbers with nulls, not within a struct or list, and read as the type
/// in the file.
pub fn is_read_here(chunk: &ColumnChunkMetaData, data_type: &ArrowType) -> bool {
    let column = chunk.column_descr();
    let is_plain = matches!(
        (column.physical_type(), data_type),
        (PhysicalType::INT32, ArrowType::Int32 | ArrowType::Date32 | ArrowType::Decimal32(_, _))
            | (
                PhysicalType::INT64,
                ArrowType::Int64 | ArrowType::Timestamp(_, _) | ArrowType::Decimal64(_, _)
            )
            | (PhysicalType::FLOAT, ArrowType::Float32)
            | (PhysicalType::DOUBLE, ArrowType::Float64)
    );
    let has_nulls =
        chunk.statistics().and_then(|statistics| statistics.null_count_opt()).is_some_and(|nulls| nulls > 0);
    is_plain
        && has_nulls
        && column.path().parts().len() == 1
        && column.max_rep_level() == 0
        && column.max_def_level() == 1
}

/// Opens a column chunk for which `is_read_here` is true.
pub fn column(
    chunk: &ColumnChunkMetaData,
    data_type: ArrowType,
    pages: Box<dyn PageReader>,
) -> Result<Box<dyn Column>> {
    Ok(match chunk.column_descr().physical_type() {
        PhysicalType::INT32 => Box::new(Numbers::<Int32Type>::new(chunk, data_type, pages)),
        PhysicalType::INT64 => Box::new(Numbers::<Int64Type>::new(chunk, data_type, pages)),
        PhysicalType::FLOAT => Box::new(Numbers::<FloatType>::new(chunk, data_type, pages)),
        PhysicalType::DOUBLE => Box::new(Numbers::<DoubleType>::new(chunk, data_type, pages)),
        other => return Err(ParquetError::General(format!("{other} is no type of numbers"))),
    })
}

/// Reads a column: the levels here, and the values by Parquet's reader, which gets the pages without levels,
/// like those of a column without nulls.
struct Numbers<T: DataType> {
    pages: Box<dyn PageReader>,
    levels: Levels,
    values_of: Queue,
    reader: ColumnReaderImpl<T>,
    data_type: ArrowType,
    /// A bit for each row that was read: set if it is not null.
    valid: BooleanBufferBuilder,
    /// The values that are not null.
    values: Vec<T::T>,
}

impl<T: DataType> Numbers<T> {
    fn new(chunk: &ColumnChunkMetaData, data_type: ArrowType, pages: Box<dyn PageReader>) -> Self {
        let (column, values_of) = (chunk.column_descr(), Queue::default());
        let without_nulls = ColumnDescriptor::new(column.self_type_ptr(), 0, 0, column.path().clone());
        let reader = ColumnReaderImpl::new(Arc::new(without_nulls), Box::new(values_of.clone()));
        let (levels, valid, values) = (Levels::default(), BooleanBufferBuilder::new(0), Vec::new());
        Self { pages, levels, values_of, reader, data_type, valid, values }
    }

    /// Goes to the next data page. Returns false if there is none.
    fn next_page(&mut self) -> Result<bool> {
        while let Some(page) = self.pages.get_next_page()? {
            if let Page::DictionaryPage { .. } = page {
                self.values_of.push(page);
                continue;
            }
            let (levels, values, encoding) = Levels::of(&page)?;
            let count = levels.clone().advance(levels.rows, None)?;
            self.levels = levels;
            if count > 0 {
                let num_values = u32::try_from(count).unwrap_or(u32::MAX);
                let (def_level_encoding, rep_level_encoding) = (Encoding::RLE, Encoding::RLE);
                self.values_of.push(Page::DataPage {
                    buf: values,
                    num_values,
                    encoding,
                    def_level_encoding,
                    rep_level_encoding,
                    statistics: None,
                });
            }
            return Ok(true);
        }
        Ok(false)
    }
}

impl<T: DataType> Column for Numbers<T>
where
    T::T: ArrowNativeType,
{
    fn skip(&mut self, rows: usize) -> Result<usize> {
        let mut left = rows;
        while left > 0 {
            if self.levels.rows == 0 {
                let Some(page) = self.pages.peek_next_page()? else { break };
                let in_page =
                    page.num_rows.or(page.num_levels).filter(|in_page| !page.is_dict && *in_page <= left);
                if let Some(in_page) = in_page {
                    self.pages.skip_next_page()?;
                    left -= in_page;
                    continue;
                }
                if !self.next_page()? {
                    break;
                }
            }
            let now = left.min(self.levels.rows);
            let values = self.levels.advance(now, None)?;
            if self.reader.skip_records(values)? != values {
                return Err(too_few());
            }
            left -= now;
        }
        Ok(rows - left)
    }

    fn read(&mut self, rows: usize) -> Result<usize> {
        self.values.reserve(rows);
        let mut left = rows;
        while left > 0 {
            if self.levels.rows == 0 && !self.next_page()? {
                break;
            }
            let now = left.min(self.levels.rows);
            let values = self.levels.advance(now, Some(&mut self.valid))?;
            if self.reader.read_records(values, None, None, &mut self.values)?.0 != values {
                return Err(too_few());
            }
            left -= now;
        }
        Ok(rows - left)
    }

    fn take(&mut self) -> Result<ArrayRef> {
        let (valid, mut values) = (self.valid.finish(), std::mem::take(&mut self.values));
        let rows = valid.len();
        let nulls = (values.len() < rows).then(|| NullBuffer::new(valid.clone()));
        spread(&mut values, &valid);
        let data = ArrayData::builder(self.data_type.clone())
            .len(rows)
            .add_buffer(Buffer::from_vec(values))
            .nulls(nulls);
        Ok(make_array(data.build()?))
    }
}

fn too_few() -> ParquetError {
    ParquetError::General("a page has fewer values than rows that are not null".to_owned())
}

/// Passes pages from one reader to another.
#[derive(Clone, Default)]
struct Queue(Arc<Mutex<VecDeque<Page>>>);

impl Queue {
    fn push(&self, page: Page) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(page);
    }
}

impl Iterator for Queue {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front().map(Ok)
    }
}

impl PageReader for Queue {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.next().transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        let pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(pages.front().map(|page| {
            let values = page.num_values() as usize;
            let is_dict = matches!(page, Page::DictionaryPage { .. });
            PageMetadata { num_rows: Some(values), num_levels: Some(values), is_dict }
        }))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.next();
        Ok(())
    }
}

/// Moves values to the rows whose bits are set; `values` has one value for each of them. All other rows may
/// hold any value.
fn spread<T: Copy + Default>(values: &mut Vec<T>, valid: &BooleanBuffer) {
    let words: Vec<u64> = valid.bit_chunks().iter_padded().collect();
    let mut end = values.len(); // end of the values that are not yet in place
    values.resize(words.len() * WORD, T::default());
    for (at, word) in words.iter().enumerate().rev() {
        let (first, count) = (at * WORD, word.count_ones() as usize);
        if end == first + count && word.trailing_ones() as usize == count {
            break; // no row before is null
        }
        let start = end - count;
        let mut moved = [T::default(); WORD];
        moved[..count].copy_from_slice(&values[start..end]);
        let mut next = 0;
        for (bit, place) in values[first..first + WORD].iter_mut().enumerate() {
            *place = moved[next % WORD];
            next += (word >> bit & 1) as usize;
        }
        end = start;
    }
    values.truncate(valid.len());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_value_gets_to_its_row(
            rows in prop::collection::vec(prop::option::weighted(0.7, any::<i32>()), 0..400),
            without_nulls in 0_usize..200,
        ) {
            let rows: Vec<Option<i32>> = (0..without_nulls as i32).map(Some).chain(rows).collect();
            let valid: BooleanBuffer = rows.iter().map(Option::is_some).collect();
            let mut values: Vec<i32> = rows.iter().flatten().copied().collect();
            spread(&mut values, &valid);
            let found: Vec<Option<i32>> =
                valid.iter().zip(values).map(|(is_valid, value)| is_valid.then_some(value)).collect();
            prop_assert_eq!(found, rows);
        }
    }
}
