// SPDX-License-Identifier: Apache-2.0

//! The JSON that a client of the broker needs.

use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Boolean(bool),
    /// A number's digits, as they are written.
    Number(String),
    Text(String),
    Array(Vec<Value>),
    /// Members in their order.
    Object(Vec<(String, Value)>),
}

/// An object of these members.
pub fn object(members: Vec<(&str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_string())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Number(number.to_string())
    }
}

impl Value {
    /// A member; null if it is absent.
    pub fn get(&self, name: &str) -> &Value {
        match self {
            Value::Object(members) => members.iter().find(|member| member.0 == name).map_or(&Value::Null, |it| &it.1),
            _ => &Value::Null,
        }
    }

    /// The string; empty if the value is of another kind.
    pub fn text(&self) -> &str {
        match self {
            Value::Text(text) => text,
            _ => "",
        }
    }

    /// The elements of an array; empty if the value is of another kind.
    pub fn items(&self) -> &[Value] {
        match self {
            Value::Array(items) => items,
            _ => &[],
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Value::Null => write!(out, "null"),
            Value::Boolean(value) => write!(out, "{value}"),
            Value::Number(digits) => write!(out, "{digits}"),
            Value::Text(text) => write_text(out, text),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    write!(out, "{}{item}", if index == 0 { "[" } else { "," })?;
                }
                write!(out, "{}", if items.is_empty() { "[]" } else { "]" })
            }
            Value::Object(members) => {
                for (index, (name, value)) in members.iter().enumerate() {
                    write!(out, "{}", if index == 0 { "{" } else { "," })?;
                    write_text(out, name)?;
                    write!(out, ":{value}")?;
                }
                write!(out, "{}", if members.is_empty() { "{}" } else { "}" })
            }
        }
    }
}

fn write_text(out: &mut fmt::Formatter, text: &str) -> fmt::Result {
    write!(out, "\"")?;
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(out, "\\{character}")?,
            '\0'..='\x1f' => write!(out, "\\u{:04x}", character as u32)?,
            _ => write!(out, "{character}")?,
        }
    }
    write!(out, "\"")
}

/// Reads one JSON text; `None` if it is invalid.
pub fn parse(text: &str) -> Option<Value> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.skip_space();
    (reader.at == text.len()).then(|| value)
}

/// The broker sends nothing deeper.
const DEPTH_MAX: usize = 80;

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Skips `word`, and space before it, if that is next.
    fn take(&mut self, word: &str) -> bool {
        self.skip_space();
        let is_next = self.text[self.at..].starts_with(word);
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.skip_space();
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(Value::Text),
            b'n' => self.take("null").then(|| Value::Null),
            b't' => self.take("true").then(|| Value::Boolean(true)),
            b'f' => self.take("false").then(|| Value::Boolean(false)),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        let mut members = vec![];
        self.at += 1;
        if self.take("}") {
            return Some(Value::Object(members));
        }
        loop {
            self.skip_space();
            let name = self.string()?;
            if !self.take(":") {
                return None;
            }
            members.push((name, self.value(depth + 1)?));
            if !self.take(",") {
                return self.take("}").then(|| Value::Object(members));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        let mut items = vec![];
        self.at += 1;
        if self.take("]") {
            return Some(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if !self.take(",") {
                return self.take("]").then(|| Value::Array(items));
            }
        }
    }

    fn number(&mut self) -> Option<Value> {
        let is_part = |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let rest = &self.text[self.at..];
        let number = &rest[..rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len())];
        self.at += number.len();
        number.parse::<f64>().ok().map(|_| Value::Number(number.to_string()))
    }

    fn string(&mut self) -> Option<String> {
        let mut string = String::new();
        if self.peek()? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|character| matches!(character, '"' | '\\' | '\0'..='\x1f'))?;
            string.push_str(&rest[..plain]);
            self.at += plain + 1;
            match rest.as_bytes()[plain] {
                b'"' => return Some(string),
                b'\\' => string.push(self.escape()?),
                _ => return None,
            }
        }
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Option<char> {
        let byte = self.peek()?;
        self.at += 1;
        Some(match byte {
            b'"' | b'\\' | b'/' => byte as char,
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.unit()?;
                let is_pair = (0xd800..0xdc00).contains(&unit) && self.text[self.at..].starts_with("\\u");
                if !is_pair {
                    return char::from_u32(unit);
                }
                self.at += 2;
                let low = self.unit()?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                return char::from_u32(0x10000 + ((unit - 0xd800) << 10) + low);
            }
            _ => return None,
        })
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        u32::from_str_radix(digits, 16).ok()
    }
}
