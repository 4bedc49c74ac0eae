#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
#
# The Perl process of the sample editor: outline.pl ROLE SOCKET JOURNAL
#
# Has an outline for each source file, a child of the file's document, which a Swift process has. Needs nothing but
# modules that come with Perl. What it reads and says is described in stage.py.
use v5.30;
use warnings;
use IO::Handle;
use IO::Socket::UNIX;
use JSON::PP;

my ($role, $path, $journal_path) = @ARGV;
my $json = JSON::PP->new->canonical->allow_nonref;
binmode($_, ':encoding(UTF-8)') for *STDIN, *STDOUT;
STDOUT->autoflush(1);
open(my $journal, '>>:encoding(UTF-8)', $journal_path) or die "$journal_path: $!\n";
$journal->autoflush(1);

sub report { my ($event, %members) = @_; say $json->encode({event => $event, %members}) }
sub note { say {$journal} join("\t", @_) }

# The broker.
my $broker = IO::Socket::UNIX->new(Peer => $path) or die "$path: $!\n";
binmode($broker, ':encoding(UTF-8)');
$broker->autoflush(0);
my ($last_id, @notifications) = (0);

sub receive {
    my $line = <$broker> // die "the broker closed the connection\n";
    return $json->decode($line);
}

# Makes several calls at once. They share the wait for the disk; answers may come in any order.
sub call_all {
    my ($method, @all_params) = @_;
    my (@ids, %results);
    for my $params (@all_params) {
        push @ids, ++$last_id;
        say {$broker} $json->encode({jsonrpc => '2.0', id => $last_id, method => $method, params => $params});
    }
    $broker->flush;
    while (keys %results < @ids) {
        my $answer = receive();
        if (!exists $answer->{id}) { push @notifications, $answer; next }
        die "$method: ", $json->encode($answer->{error}), "\n" if $answer->{error};
        $results{$answer->{id}} = $answer->{result};
    }
    return @results{@ids};
}

sub call { my ($method, %params) = @_; return (call_all($method, \%params))[0] }

# The outlines.
sub outline {
    my ($key, $window, $document) = split /\t/, shift;
    utf8::encode(my $name = $key);
    open(my $file, '<:encoding(UTF-8)', $name) or die "$key: $!\n";
    my $text = do { local $/; <$file> } // '';
    my @names = $text =~ /\b(?:func|struct|enum|class|actor|extension|def|sub)\s+(\w+)|^#+ (.+)/gm;
    return {key => $key, document => [$window, $document], names => [grep { defined } @names]};
}

sub next_state {
    my $outline = shift;
    my @names = @{$outline->{names}};
    return {
        expanded => [map { $names[rand @names] } 1 .. (@names ? 1 + int(rand 8) : 0)],
        selected => int(rand(1 + @names)),
        # The document is an object of another process.
        of => {'$restorable' => $outline->{document}},
    };
}

sub encode {
    my @states = map { {object => $_->{object}, state => next_state($_)} } @_;
    note('sent', $_[$_]{key}, $json->encode($states[$_]{state})) for keys @states;
    call_all('encodeRestorableState', @states);
    note('done', $_->{key}) for @_;
}

my @outlines;
while (defined(my $line = <STDIN>)) {
    chomp $line;
    last if $line eq '';
    push @outlines, outline($line);
}
my $session = call('initialize', application => 'org.restorationd.Try', process => $role, serves => ['pathChanged']);
sub in_portions { my ($do, @all) = @_; $do->(splice @all, 0, 64) while @all }

in_portions(sub {
    my @registered = call_all('registerObjectForStateRestoration', map { {
        restorationIdentifier => 'Outline', restorationParent => $_->{document}, objectClass => 'Outline',
        awaitParentMilliseconds => 30000,
    } } @_);
    $_[$_]{object} = $registered[$_]{object} for keys @registered;
}, @outlines);
report('registered', objects => 0 + @outlines, reason => $session->{restoration}{reason});

my %commands = (
    save => sub {
        in_portions(\&encode, @outlines);
        report('saved', objects => 0 + @outlines);
    },
    type => sub {
        my $count = shift;
        for my $number (1 .. $count) {
            encode($outlines[rand @outlines]);
            report('typing', states => $number) if $number % 50 == 0;
        }
        report('typed', states => 0 + $count);
    },
    decode => sub {
        in_portions(sub {
            my @decoded = call_all('decodeRestorableState', map { {object => $_->{object}} } @_);
            note('back', $_[$_]{key}, $json->encode($decoded[$_]{state})) for keys @decoded;
        }, @outlines);
        call('completeStateRestoration');
        report('decoded', objects => 0 + @outlines);
    },
    # Waits for this many notifications of new paths, and updates the document's path.
    told => sub {
        my @changes = map { (@notifications ? shift @notifications : receive())->{params} } 1 .. shift;
        for my $change (@changes) {
            my ($outline) = grep { $_->{object} == $change->{object} } @outlines;
            $outline->{document} = [@{$change->{path}}[0, 1]];
        }
        report('told', paths => [map { $_->{path} } @changes]);
    },
    goodbye => sub {
        call('goodbye', reason => 'logout');
        report('left', objects => 0 + @outlines);
    },
);
while (defined(my $line = <STDIN>)) {
    my ($command, @arguments) = split ' ', $line;
    ($commands{$command} // die "unknown command $command\n")->(@arguments);
}
