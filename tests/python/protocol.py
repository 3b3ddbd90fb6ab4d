"""The wire form, written from PROTOCOL.md alone: the tables are read from it, the coding is by its sections 2 to 5."""

import base64
import hashlib
import hmac
import pathlib
import re
import struct

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "PROTOCOL.md"
BODY_BYTES_MAX = 65_528
WIDTHS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i16": 2, "i32": 4}


class ProtocolError(Exception):
    """The peer broke a rule of PROTOCOL.md."""


def _tables(text):
    """Headings of level three with the cells of the table below each."""
    for section in text.split("\n### ")[1:]:
        heading, rest = section.split("\n", 1)
        lines = [line for line in rest.split("\n## ")[0].splitlines() if line.startswith("|")]
        yield heading, [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


class Field(tuple):
    """Name, type and maximum; `appended` where older senders do not have it, and what it then is."""

    def __new__(cls, row):
        field = super().__new__(cls, (row[0].strip("`"), row[1], int(row[2].replace(",", "") or 0)))
        found = re.search(r"Appended; default: (.+)\.$", row[-1])
        field.appended = found is not None
        said = found[1].strip("`") if found else "nothing"
        words = {"nothing": None, "false": False, "true": True, "zeros": bytes(field[2])}
        field.default = words[said] if said in words else int(said) if said.isdigit() else said
        return field


KINDS, NUMBERS, RECORDS, VALUES = {}, {}, {}, {}
for _heading, _rows in _tables(DOCUMENT.read_text(encoding="utf-8")):
    if found := re.fullmatch(r"0x([0-9a-f]{4}) `(\w+)`", _heading):
        KINDS[int(found[1], 16)] = (found[2], [Field(row) for row in _rows])
        NUMBERS[found[2], int(found[1], 16) >= 0x8000] = int(found[1], 16)
    elif found := re.fullmatch(r"record (\w+)", _heading):
        RECORDS[found[1]] = [Field(row) for row in _rows]
    elif found := re.fullmatch(r"(enumeration|set) (\w+) \((\w+)\)", _heading):
        VALUES[found[2]] = (found[1], found[3], {int(row[0]): row[1].strip("`") for row in _rows})


def kind_class(kind):
    return {0: "link", 1: "control", 2: "audio"}.get(kind >> 12 & 7, "reserved")


# --- section 3: values -------------------------------------------------------------------------------------------------


def _varint(value):
    if value <= 250:
        return bytes([value])
    for first, form in ((251, "<H"), (252, "<I"), (253, "<Q")):
        if value < 1 << 8 * struct.calcsize(form):
            return bytes([first]) + struct.pack(form, value)
    raise ProtocolError(f"{value} has more than 64 bits")


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise ProtocolError(f"body ends {self.at + count - len(self.data)} bytes too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self, width=8):
        first = self.take(1)[0]
        if first <= 250:
            return first
        size = {251: 2, 252: 4, 253: 8}.get(first, 16)
        if size > width:
            raise ProtocolError(f"a number of {size} bytes where {width} are the most")
        return int.from_bytes(self.take(size), "little")

    def block(self):
        return self.take(self.varint())


def _put(wire, maximum, value):
    sort, _, record = wire.partition(" ")
    if sort == "u8" or sort == "bool":
        return bytes([value])
    if sort[0] == "u" and sort in WIDTHS:
        return _varint(value)
    if sort in WIDTHS:
        return _varint(2 * value if value >= 0 else -2 * value - 1)
    if sort in ("text", "bytes"):
        data = value.encode() if sort == "text" else value
        if len(data) > maximum:
            raise ProtocolError(f"{len(data)} bytes where {maximum} are the most")
        return _varint(len(data)) + data
    if sort == "array":
        if len(value) != maximum:
            raise ProtocolError(f"{len(value)} bytes where there must be {maximum}")
        return value
    if sort == "record":
        data = put_fields(RECORDS[record], value)
        return _varint(len(data)) + data
    if sort == "option":
        return b"\0" if value is None else b"\1" + _put(f"record {record}", 0, value)
    if sort == "list":
        data = b"".join(_put(f"record {record}", 0, item) for item in value)
        return _varint(len(data)) + data
    sort, number, names = VALUES[wire]
    numbers = {name: number for number, name in names.items()}
    if sort == "set":
        value = sum(1 << numbers.get(bit, bit) for bit in value)
    return _put(number, 0, numbers.get(value, value))


def _get(wire, maximum, reader):
    sort, _, record = wire.partition(" ")
    if sort == "u8":
        return reader.take(1)[0]
    if sort == "bool":
        if (value := reader.take(1)[0]) > 1:
            raise ProtocolError(f"{value} is no boolean")
        return value == 1
    if sort in WIDTHS:
        value = reader.varint(WIDTHS[sort])
        return value if sort[0] == "u" else value >> 1 ^ -(value & 1)
    if sort in ("text", "bytes"):
        data = reader.block()
        if len(data) > maximum:
            raise ProtocolError(f"{len(data)} bytes where {maximum} are the most")
        try:
            return data.decode() if sort == "text" else data
        except UnicodeDecodeError as error:
            raise ProtocolError(str(error)) from error
    if sort == "array":
        return reader.take(maximum)
    if sort == "record":
        return get_fields(RECORDS[record], _Reader(reader.block()))
    if sort == "option":
        return _get(f"record {record}", 0, reader) if _get("bool", 0, reader) else None
    if sort == "list":
        block, items = _Reader(reader.block()), []
        while block.at < len(block.data):
            items.append(_get(f"record {record}", 0, block))
        if len(items) > maximum:
            raise ProtocolError(f"{len(items)} items where {maximum} are the most")
        return items
    sort, number, names = VALUES[wire]
    value = _get(number, 0, reader)
    if sort == "set":
        return [names.get(bit, bit) for bit in range(32) if value >> bit & 1]
    return names.get(value, value)


def put_fields(fields, values):
    said = {field[0]: values.get(field[0], field.default) if field.appended else values[field[0]] for field in fields}
    sent = list(fields)
    while sent and sent[-1].appended and said[sent[-1][0]] == sent[-1].default:
        sent.pop()
    return b"".join(_put(wire, maximum, said[name]) for name, wire, maximum in sent)


def get_fields(fields, reader):
    values = {}
    for field in fields:
        if field.appended and reader.at == len(reader.data):
            break
        name, wire, maximum = field
        values[name] = _get(wire, maximum, reader)
    return values


# --- sections 2, 4 and 5: envelope, stamp, versions --------------------------------------------------------------------

STAMP = [Field((name, wire, "")) for name, wire in (("sequence", "u32"), ("turn", "u32"), ("time_us", "u64"))]


def encode(frame):
    """Bytes of a frame: a dict with `kind_number`, the stamp and the fields; byte strings are `bytes`."""
    kind = frame["kind_number"]
    body = put_fields(STAMP + KINDS[kind][1], frame)
    if len(body) > BODY_BYTES_MAX:
        raise ProtocolError(f"a body of {len(body)} bytes")
    return struct.pack("<BBHI", 1, 0, kind, len(body)) + body


def decode(data):
    """The frame in the bytes of one envelope; of unknown kinds only `kind_number` and the stamp."""
    if data and data[0] != 1:
        raise ProtocolError(f"version {data[0]}")
    if len(data) < 8:
        raise ProtocolError(f"{len(data)} bytes are no envelope")
    _, _, kind, length = struct.unpack_from("<BBHI", data)
    if length > BODY_BYTES_MAX or len(data) != 8 + length:
        raise ProtocolError(f"a body of {len(data) - 8} bytes in an envelope of {length}")
    reader = _Reader(data[8:])
    name, fields = KINDS.get(kind, (None, []))
    frame = {"kind_number": kind} | ({"kind": name} if name else {})
    return frame | get_fields(STAMP + fields, reader)


# --- section 6: binding ------------------------------------------------------------------------------------------------

EXPORTER_LABEL = b"EXPORTER-lorgnette-auth-1"


def exporter(master_secret, digest):
    """The derived secret and the binding of a TLS connection; `digest` is the hash of its cipher suite."""
    empty = hashlib.new(digest, b"").digest()
    derived = _expand_label(master_secret, digest, EXPORTER_LABEL, empty, len(empty))
    return derived, _expand_label(derived, digest, b"exporter", empty, 32)


def _expand_label(secret, digest, label, context, length):
    """RFC 8446, section 7.1; 32 or 48 bytes are one block of HKDF."""
    label = b"tls13 " + label
    info = struct.pack(">HB", length, len(label)) + label + bytes([len(context)]) + context
    return hmac.new(secret, info + b"\1", digest).digest()[:length]


# --- section 12: JSON form ---------------------------------------------------------------------------------------------


def _convert(fields, values, change):
    out = dict(values)
    for name, wire, _ in fields:
        sort, _, record = wire.partition(" ")
        value = values.get(name)
        if value is None:
            continue
        if sort in ("bytes", "array"):
            out[name] = change(value)
        elif sort in ("record", "option"):
            out[name] = _convert(RECORDS[record], value, change)
        elif sort == "list":
            out[name] = [_convert(RECORDS[record], item, change) for item in value]
    return out


def to_json(frame):
    return _convert(KINDS.get(frame["kind_number"], (None, []))[1], frame, lambda data: base64.b64encode(data).decode())


def from_json(frame):
    return _convert(KINDS.get(frame["kind_number"], (None, []))[1], frame, lambda text: base64.b64decode(text, validate=True))
