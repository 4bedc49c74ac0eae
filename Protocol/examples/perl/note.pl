#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
#
# A note that outlives its process: note.pl IDENTIFIER [PARENT_COMPONENT ...]
#
# Every line on standard input becomes the note. However the program ends, the next one with the same identifier has the
# note again. See ../README.md for the broker's part. Needs only modules that come with Perl.
use v5.30;
use warnings;
use Encode qw(decode);
use IO::Select;
use IO::Socket::UNIX;
use JSON::PP;

my $language = 'perl';
my $json     = JSON::PP->new->utf8;
my ($broker, $last_id, %answers) = (undef, 0);
my $note;    # nothing yet

binmode STDOUT, ':encoding(UTF-8)';
binmode STDERR, ':encoding(UTF-8)';
STDOUT->autoflush;
$SIG{PIPE} = 'IGNORE';

sub fail {
    my ($status, @lines) = @_;
    say STDERR $_ for @lines;
    exit $status;
}

# A handle that is read when it is readable, and its complete lines.
sub reader { return {handle => shift, bytes => '', lines => []} }

# Takes what has come; false at the end.
sub read_more {
    my $reader = shift;
    my $count  = sysread $reader->{handle}, $reader->{bytes}, 1 << 16, length $reader->{bytes};
    push @{$reader->{lines}}, $1 while $reader->{bytes} =~ s/\A([^\n]*)\n//;
    return 1 if $count;
    push @{$reader->{lines}}, $reader->{bytes} if length $reader->{bytes};
    $reader->{bytes} = '';
    return 0;
}

# JSON-RPC both ways, one message a line.
sub send_message {
    my $text = $json->encode({jsonrpc => '2.0', @_}) . "\n";
    while (length $text) {
        my $count = syswrite $broker->{handle}, $text or fail(69, 'the broker has ended the connection');
        substr $text, 0, $count, '';
    }
}

# The broker saves. If there is no note yet, the saved state stays.
sub serve {
    my $message = shift;
    return if !exists $message->{id};
    if ($message->{method} ne 'encodeRestorableStateWithCoder') {
        my $error = {code => -32601, message => "there is no $message->{method}"};
        return send_message(id => $message->{id}, error => $error);
    }
    my @answer = defined $note ? (state => current_state()) : (unchanged => JSON::PP::true);
    my @states = map { {object => $_->{object}, @answer} } @{$message->{params}{objects}};
    send_message(id => $message->{id}, result => {states => \@states});
}

sub current_state { return {language => $language, note => $note} }

# Reads from the broker once, and handles its messages.
sub listen_once {
    read_more($broker) or fail(69, 'the broker has ended the connection');
    for my $message (map { $json->decode($_) } splice @{$broker->{lines}}) {
        if (exists $message->{method}) { serve($message) } else { $answers{$message->{id}} = $message }
    }
}

# Calls the broker, and serves it until the answer comes.
sub call {
    my ($method, %params) = @_;
    my $id = ++$last_id;
    send_message(id => $id, method => $method, params => \%params);
    listen_once() while !$answers{$id};
    my $answer = delete $answers{$id};
    return $answer->{result} if !$answer->{error};
    my ($message, $data) = @{$answer->{error}}{qw(message data)};
    fail(1, $message, $data->{hint} ? "hint: $data->{hint}" : ());
}

my ($identifier, @parent) = map { decode('UTF-8', $_) } @ARGV;
fail(64, 'usage: note.pl IDENTIFIER [PARENT_COMPONENT ...]') if !defined $identifier;
my $path   = $ENV{RESTORATIOND_SOCKET} || ($ENV{XDG_RUNTIME_DIR} // '') . '/restorationd/broker.sock';
fail(69, "the path of the socket has more than 107 bytes: $path") if length $path > 107;
my $socket = IO::Socket::UNIX->new(Peer => $path)
    or fail(69, "no broker at $path ($!): start restorationd, or set RESTORATIOND_SOCKET");
$broker = reader($socket);

call('initialize',
    application => $ENV{RESTORATION_APPLICATION} || 'org.example.notes',
    process     => $language,
    storyboard  => $ENV{RESTORATION_UNIT} ? { unit => $ENV{RESTORATION_UNIT} } : undef,
    serves      => ['encodeRestorableStateWithCoder'],
);
my $object = call('registerObjectForStateRestoration',
    restorationIdentifier   => $identifier,
    restorationParent       => @parent ? \@parent : undef,
    awaitParentMilliseconds => 10_000,
)->{object};
my $saved = call('decodeRestorableState', object => $object);
# Another program may have saved a state of another form. In Perl a number is a text, in JSON it is not.
my $text = $saved->{status} eq 'available' ? $saved->{state}{note} : undef;
$note = $text if $json->encode([$text]) =~ /\A\["/;
say defined $note ? "restored: $note" : 'new';
call('completeStateRestoration');

my $input  = reader(\*STDIN);
my $select = IO::Select->new($input->{handle}, $socket);
my $is_over;
while (!$is_over) {
    for my $handle ($select->can_read) {
        if ($handle == $socket) { listen_once(); next }
        $is_over = !read_more($input);
        while (defined(my $line = shift @{$input->{lines}})) {
            if ($line eq 'quit') { $is_over = 1; last }
            $note = decode('UTF-8', $line);
            say "noted: $note";
            call('invalidateRestorableState', object => $object);
        }
    }
}
# After goodbye the broker would not ask for a note that was typed a moment ago.
call('encodeRestorableState', object => $object, state => current_state()) if defined $note;
call('goodbye', reason => 'restart');
