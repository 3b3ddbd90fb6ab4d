declare module '@lorgnette/std' {
  /** Files of the wearer's workspace. Paths are relative, such as "notes/list.csv". 16 MiB and 256 files in all. */
  export const fs: {
    /** A text in UTF-8. At most 1 MiB in one call: read longer files in parts, in bytes. */
    readFile(path: string, part?: Part): Promise<string>;
    readBytes(path: string, part?: Part): Promise<Uint8Array>;
    /** Replaces a file, or makes it with its folders. About 60 KiB in one call: append the rest. */
    writeFile(path: string, data: Data): Promise<void>;
    appendFile(path: string, data: Data): Promise<void>;
    /** What is in a folder; without a path, in the workspace itself. */
    list(path?: string): Promise<Entry[]>;
    stat(path: string): Promise<Entry>;
    /** Removes a file or an empty folder. */
    remove(path: string): Promise<void>;
    mkdir(path: string): Promise<void>;
  };

  /** Requests to the hosts that the operator has listed. `${secret:NAME}` in a header's value is filled in outside. */
  export const http: {
    get(url: string, options?: { headers?: Record<string, string> }): Promise<Response>;
    /** A string or bytes are sent as they are, other values as JSON. */
    post(url: string, data?: unknown, options?: { headers?: Record<string, string> }): Promise<Response>;
    request(options: {
      url: string;
      method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
      headers?: Record<string, string>;
      body?: Data;
      json?: unknown;
    }): Promise<Response>;
  };

  export const json: {
    parse(text: string): any;
    stringify(value: unknown, indent?: number | string): string;
  };

  export const csv: {
    /** Records by the names in the first row. Empty lines are left out. */
    parse(text: string, options?: { header?: true; separator?: string }): Record<string, string>[];
    /** Rows. */
    parse(text: string, options: { header: false; separator?: string }): string[][];
    /** Records, or rows. Lines end with CRLF. */
    stringify(
      records: readonly object[] | readonly (readonly unknown[])[],
      options?: { columns?: readonly string[]; header?: boolean; separator?: string },
    ): string;
  };

  /** Secrets are named, not seen. */
  export const crypto: {
    /** In hexadecimal digits. */
    hash(algorithm: 'sha256' | 'sha512', data: Data): Promise<string>;
    /** HMAC-SHA256 in hexadecimal digits. */
    hmac(secret: string, data: Data): Promise<string>;
    /** Base64. */
    encrypt(secret: string, data: Data): Promise<string>;
    decrypt(secret: string, sealed: string): Promise<string>;
    decryptBytes(secret: string, sealed: string): Promise<Uint8Array>;
    /** At most 1,024. */
    randomBytes(count: number): Promise<Uint8Array>;
    uuid(): Promise<string>;
  };

  /** Instants are milliseconds since the Unix epoch, or texts that `parse` reads. Without a zone: UTC. */
  export const time: {
    now(): Promise<number>;
    /** A zone by its name, such as "Europe/Berlin"; without one, the wearer's. */
    zone(name?: string): Promise<Zone>;
    parts(at: Instant, zone?: Zone): Parts;
    /** Default: ISO 8601. YYYY YY MMMM MMM MM M DD D dddd ddd HH H hh h mm m ss s SSS A a Z, [text] as it is. */
    format(at: Instant, pattern?: string, zone?: Zone): string;
    /** ISO 8601. The zone counts if the text has no offset. */
    parse(text: string, zone?: Zone): number;
    /** Years to days keep the local time of day. */
    add(at: Instant, span: Span, zone?: Zone): number;
  };

  type Data = string | Uint8Array;
  type Instant = number | string;

  interface Part {
    offset?: number;
    length?: number;
  }

  interface Entry {
    name: string;
    isFolder: boolean;
    bytes: number;
    /** Milliseconds since the Unix epoch. */
    modified: number;
  }

  interface Response {
    status: number;
    /** From 200 to 299. */
    ok: boolean;
    url: string;
    /** Names in lower case. */
    headers: Record<string, string>;
    text(): string;
    json(): any;
    bytes(): Uint8Array;
  }

  interface Zone {
    readonly name: string;
    /** Since when, in seconds since the Unix epoch, and how many seconds east of UTC. */
    readonly offsets: readonly (readonly [number, number])[];
  }

  interface Parts {
    year: number;
    /** From 1. */
    month: number;
    day: number;
    hour: number;
    minute: number;
    second: number;
    millisecond: number;
    /** 0 for Sunday. */
    weekday: number;
    /** Minutes east of UTC. */
    offset: number;
  }

  interface Span {
    years?: number;
    months?: number;
    weeks?: number;
    days?: number;
    hours?: number;
    minutes?: number;
    seconds?: number;
    milliseconds?: number;
  }
}

declare module '@agent-spaces/std' {
  export * from '@lorgnette/std';
}
