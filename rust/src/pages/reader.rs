//! Reads and decompresses the pages of a column, in place of Parquet's own decoder, so that no page takes
//! more memory than its header declares.

use std::collections::VecDeque;
use std::sync::Arc;

use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

use super::headers::{Header, header_at};
use super::inflate::inflate;
use crate::error::Error;

type Result<T> = std::result::Result<T, ParquetError>;

/// A row group of a file.
pub struct Group<R> {
    pub file: Arc<R>,
    pub metadata: Arc<ParquetMetaData>,
    pub index: usize,
}

impl<R: ChunkReader + 'static> Group<R> {
    /// Returns the pages of a leaf.
    pub fn pages(&self, leaf: usize) -> Result<Box<dyn PageReader>> {
        let places = self.metadata.offset_index().and_then(|groups| groups.get(self.index)?.get(leaf));
        let places = places.map(|places| places.page_locations().clone());
        let column = self.metadata.row_group(self.index).column(leaf);
        super::of_column(Arc::clone(&self.file), column, self.num_rows(), places)
    }
}

impl<R: ChunkReader + 'static> RowGroups for Group<R> {
    fn num_rows(&self) -> usize {
        usize::try_from(self.metadata.row_group(self.index).num_rows()).unwrap_or(0)
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>> {
        Ok(Box::new(ColumnPages(Some(self.pages(leaf)))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.metadata.row_group(self.index)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The pages of one column chunk.
struct ColumnPages(Option<Result<Box<dyn PageReader>>>);

impl Iterator for ColumnPages {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take()
    }
}

impl PageIterator for ColumnPages {}

/// Where the headers of the further pages are.
enum Headers {
    /// Each page follows the one before: the position of the next header, and the end of the column chunk.
    InARow(u64, u64),
    /// The positions are known from the file's page index.
    At(VecDeque<u64>),
}

/// The pages of a column chunk.
pub struct BoundedPages<R: ChunkReader> {
    file: Arc<R>,
    stored: SerializedPageReader<R>,
    codec: Compression,
    name: String,
    headers: Headers,
}

impl<R: ChunkReader + 'static> BoundedPages<R> {
    pub fn new(
        file: Arc<R>,
        column: &ColumnChunkMetaData,
        rows: usize,
        places: Option<Vec<PageLocation>>,
    ) -> Result<Self> {
        let (start, length) = column.byte_range();
        let headers = match &places {
            None => Headers::InARow(start, start.saturating_add(length)),
            Some(places) => {
                let data: Vec<u64> = places.iter().map(|place| place.offset.unsigned_abs()).collect();
                let dictionary = data.first().is_some_and(|first| *first != start).then_some(start);
                Headers::At(dictionary.into_iter().chain(data).collect())
            }
        };
        let plain = column.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        let stored = SerializedPageReader::new(Arc::clone(&file), &plain, rows, places)?;
        Ok(Self { file, stored, codec: column.compression(), name: column.column_path().string(), headers })
    }

    /// Returns the header of the next page.
    fn header(&mut self) -> Result<Option<Header>> {
        let at = match &mut self.headers {
            Headers::At(places) => places.pop_front(),
            Headers::InARow(at, end) => Some(*at).filter(|at| at < end),
        };
        let Some(at) = at else { return Ok(None) };
        let header =
            header_at(self.file.as_ref(), at).map_err(|error| ParquetError::External(Box::new(error)))?;
        if let Headers::InARow(at, _) = &mut self.headers {
            *at = at
                .saturating_add(header.length as u64)
                .saturating_add(header.compressed.max(0).unsigned_abs());
        }
        Ok(Some(header))
    }

    fn unfold(&self, plain: &[u8], packed: &[u8], claimed: usize) -> Result<bytes::Bytes> {
        let page = inflate(self.codec, plain, packed, claimed).map_err(|wrong| {
            let error =
                Error::protocol("a page of a Parquet file does not decompress to the size in its header");
            let found = format!("column {}, {} bytes stored: {wrong}", self.name, plain.len() + packed.len());
            ParquetError::External(Box::new(error.found(found).expected(format!("{claimed} bytes"))))
        })?;
        Ok(page.into())
    }

    fn unfolded(&self, page: Page, claimed: usize) -> Result<Page> {
        Ok(match page {
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            } => {
                let buf = self.unfold(&[], &buf, claimed)?;
                Page::DataPage {
                    buf,
                    num_values,
                    encoding,
                    def_level_encoding,
                    rep_level_encoding,
                    statistics,
                }
            }
            Page::DictionaryPage { buf, num_values, encoding, is_sorted } => Page::DictionaryPage {
                buf: self.unfold(&[], &buf, claimed)?,
                num_values,
                encoding,
                is_sorted,
            },
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed: true,
                statistics,
            } => {
                let levels = (def_levels_byte_len as usize).saturating_add(rep_levels_byte_len as usize);
                let (plain, packed) = buf.split_at_checked(levels).ok_or_else(|| {
                    let error = Error::protocol("a page of a Parquet file is shorter than its levels");
                    let found = format!("column {}: {} bytes", self.name, buf.len());
                    ParquetError::External(Box::new(
                        error.found(found).expected(format!("at least {levels}")),
                    ))
                })?;
                Page::DataPageV2 {
                    buf: self.unfold(plain, packed, claimed)?,
                    num_values,
                    encoding,
                    num_nulls,
                    num_rows,
                    def_levels_byte_len,
                    rep_levels_byte_len,
                    is_compressed: true,
                    statistics,
                }
            }
            other => other,
        })
    }
}

impl<R: ChunkReader + 'static> Iterator for BoundedPages<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<R: ChunkReader + 'static> PageReader for BoundedPages<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(page) = self.stored.get_next_page()? else { return Ok(None) };
        loop {
            match self.header()? {
                Some(header) if header.index => {}
                Some(header) => {
                    return self.unfolded(page, usize::try_from(header.uncompressed).unwrap_or(0)).map(Some);
                }
                None => return Err(ParquetError::EOF("a page without a header".to_owned())),
            }
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.stored.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.header()?;
        self.stored.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.stored.at_record_boundary()
    }
}
