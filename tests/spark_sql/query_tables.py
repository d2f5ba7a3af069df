"""A small warehouse with nulls, for whole queries: the same rows here and in Spark."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import job_tables
import pyarrow as pa

_START = datetime.date(2000, 1, 20)
_CATEGORIES = ("Books", "Home", "Music", None)
_STATES = ("TN", "GA", "CA", None)


def tables() -> dict[str, pa.Table]:
    """Name -> rows, including those of job_tables.py. All random numbers are drawn in one order, so that the
    rows are always the same."""
    draw = random.Random(5)

    def some(values: Any, nulls: float = 0.1) -> Any:
        return None if draw.random() < nulls else draw.choice(values)

    def money(low: int, high: int, nulls: float = 0.1) -> Decimal | None:
        return None if draw.random() < nulls else Decimal(draw.randint(low, high)) / 100

    days = [_START + datetime.timedelta(days=9 * number) for number in range(44)]
    dates = [
        (
            number + 1,
            day,
            day.year,
            day.month,
            (day.month - 1) // 3 + 1,
            (day - _START).days // 7,
            day.strftime("%A"),
        )
        for number, day in enumerate(days)
    ]
    items = [
        (
            number + 1, f"AAAA{(number + 1) // 2:04d}", _CATEGORIES[number % 4], f"class{number % 3}",
            f"brand#{number % 5}", number % 5 + 1, money(50, 9900, 0.05), some((128, 270, 821)),
            some(("red", "green", "powder")),
        )
        for number in range(14)
    ]  # fmt: skip
    addresses = [
        (number + 1, _STATES[number % 4], some(("Fairview", "Midway", "Oakland")), "United States",
         f"{24000 + number * 37}", Decimal("-5.00") - number % 3)
        for number in range(9)
    ]  # fmt: skip
    customers = [
        (number + 1, f"C{number:03d}", some(("Ann", "Bob", "Cid")), some(("Lee", "May", "Roy")),
         some(range(1, 10)), some(("CHILE", "JAPAN")), some(range(1930, 1990)))
        for number in range(13)
    ]  # fmt: skip
    stores = [
        (1, "S1", "ought", "TN", "Midway", 240),
        (2, "S2", "able", "GA", "Fairview", 295),
        (3, "S3", "ese", None, None, None),
    ]
    sold = [
        (
            some(range(1, 45)), draw.randint(1, 14), some(range(1, 14)), some((1, 2, 3)), number // 3 + 1,
            some(range(1, 40)), money(100, 20000), money(100, 90000), money(-9000, 9000), money(0, 500, 0.5),
        )
        for number in range(70)
    ]  # fmt: skip
    returned = [
        (
            some(range(1, 45)),
            row[1],
            row[2],
            row[3],
            row[4],
            some(range(1, 10)),
            money(100, 9000),
            money(10, 900),
        )
        for row in draw.sample(sold, 22)
    ]
    catalog = [
        (some(range(1, 45)), draw.randint(1, 14), some(range(1, 14)), number // 2 + 1, some(range(1, 40)),
         money(100, 20000), money(100, 90000), money(-9000, 9000), some((1, 2)))
        for number in range(50)
    ]  # fmt: skip
    web = [
        (some(range(1, 45)), draw.randint(1, 14), some(range(1, 14)), number // 2 + 1, some(range(1, 40)),
         money(100, 20000), money(100, 90000), money(-9000, 9000), some((1, 2)))
        for number in range(45)
    ]  # fmt: skip
    utc = datetime.timezone.utc
    events = [
        {
            "id": number, "who": ("ann", "bob", None)[number % 3],
            "at": datetime.datetime(2024, 3, 1, 8, 0, tzinfo=utc) + datetime.timedelta(hours=7 * number)
            if number != 5 else None,
            "tags": [["a", "b"], [], None, ["c", None]][number % 4],
            "attrs": [{"k": number, "z": None}, {}, None][number % 3],
            "point": {"x": number / 4, "y": number} if number != 4 else None,
            "items": [[{"sku": "p", "qty": 1}, {"sku": "q", "qty": None}], [], None][number % 3],
            "score": [1.5, None, float("nan"), -0.0, 0.0][number % 5],
        }
        for number in range(10)
    ]  # fmt: skip
    price = pa.decimal128(7, 2)
    sales = {"quantity": pa.int32(), "sales_price": price, "ext_sales_price": price, "net_profit": price}
    return {
        **job_tables.tables(),
        "date_dim": _table(dates, d_date_sk=pa.int32(), d_date=pa.date32(), d_year=pa.int32(),
                           d_moy=pa.int32(), d_qoy=pa.int32(), d_week_seq=pa.int32(), d_day_name=pa.string()),
        "item": _table(items, i_item_sk=pa.int32(), i_item_id=pa.string(), i_category=pa.string(),
                       i_class=pa.string(), i_brand=pa.string(), i_brand_id=pa.int32(), i_current_price=price,
                       i_manufact_id=pa.int32(), i_color=pa.string()),
        "customer_address": _table(addresses, ca_address_sk=pa.int32(), ca_state=pa.string(),
                                   ca_city=pa.string(), ca_country=pa.string(), ca_zip=pa.string(),
                                   ca_gmt_offset=pa.decimal128(5, 2)),
        "customer": _table(customers, c_customer_sk=pa.int32(), c_customer_id=pa.string(),
                           c_first_name=pa.string(), c_last_name=pa.string(), c_current_addr_sk=pa.int32(),
                           c_birth_country=pa.string(), c_birth_year=pa.int32()),
        "store": _table(stores, s_store_sk=pa.int32(), s_store_id=pa.string(), s_store_name=pa.string(),
                        s_state=pa.string(), s_city=pa.string(), s_number_employees=pa.int32()),
        "store_sales": _table(sold, ss_sold_date_sk=pa.int32(), ss_item_sk=pa.int32(),
                              ss_customer_sk=pa.int32(), ss_store_sk=pa.int32(), ss_ticket_number=pa.int64(),
                              **{f"ss_{name}": kind for name, kind in sales.items()}, ss_coupon_amt=price),
        "store_returns": _table(returned, sr_returned_date_sk=pa.int32(), sr_item_sk=pa.int32(),
                                sr_customer_sk=pa.int32(), sr_store_sk=pa.int32(),
                                sr_ticket_number=pa.int64(), sr_return_quantity=pa.int32(),
                                sr_return_amt=price, sr_net_loss=price),
        "catalog_sales": _table(catalog, cs_sold_date_sk=pa.int32(), cs_item_sk=pa.int32(),
                                cs_bill_customer_sk=pa.int32(), cs_order_number=pa.int64(),
                                **{f"cs_{name}": kind for name, kind in sales.items()},
                                cs_warehouse_sk=pa.int32()),
        "web_sales": _table(web, ws_sold_date_sk=pa.int32(), ws_item_sk=pa.int32(),
                            ws_bill_customer_sk=pa.int32(), ws_order_number=pa.int64(),
                            **{f"ws_{name}": kind for name, kind in sales.items()},
                            ws_warehouse_sk=pa.int32()),
        "events": pa.Table.from_pylist(events, schema=pa.schema([
            ("id", pa.int32()), ("who", pa.string()), ("at", pa.timestamp("us", "UTC")),
            ("tags", pa.list_(pa.string())), ("attrs", pa.map_(pa.string(), pa.int32())),
            ("point", pa.struct([("x", pa.float64()), ("y", pa.int32())])),
            ("items", pa.list_(pa.struct([("sku", pa.string()), ("qty", pa.int32())]))),
            ("score", pa.float64()),
        ])),
    }  # fmt: skip


def _table(rows: list[tuple[Any, ...]], **types: pa.DataType) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table(
        {name: pa.array(column, kind) for (name, kind), column in zip(types.items(), columns, strict=True)}
    )
