# SPDX-License-Identifier: Apache-2.0
#
# A process of the application that main.py is the delegate of. It does not know its unit: the broker sees it.
use v5.30;
use warnings;
use IO::Handle;
use IO::Socket::UNIX;
use JSON::PP;

my $json = JSON::PP->new->canonical->allow_nonref;
open(my $journal, '>>', "$ENV{HOME}/journal") or die "journal: $!\n";
$journal->autoflush(1);
my $path = "$ENV{XDG_RUNTIME_DIR}/restorationd/broker.sock";
my $broker = IO::Socket::UNIX->new(Peer => $path) or die "$path: $!\n";
$broker->autoflush(1);

sub send_message { say {$broker} $json->encode({jsonrpc => '2.0', @_}) }

sub handle {
    my $message = shift;
    my $method = $message->{method};
    if ($method eq 'decodeRestorableStateWithCoder') {
        say {$journal} "left back $_->{state}{n}" for @{$message->{params}{objects}};
    } elsif ($method eq 'applicationFinishedRestoringState') {
        say {$journal} 'left finished';
    }
    send_message(id => $message->{id}, result => {}) if exists $message->{id};
}

sub call {
    my ($number, $method, %params) = @_;
    send_message(id => $number, method => $method, params => \%params);
    while (defined(my $line = <$broker>)) {
        my $message = $json->decode($line);
        return $message->{result} unless $message->{method};
        handle($message);
    }
    die "the broker closed the connection\n";
}

call(1, 'initialize',
    application => 'org.example.Three', process => 'left',
    serves => ['decodeRestorableStateWithCoder', 'applicationFinishedRestoringState']);
my $thing = call(2, 'registerObjectForStateRestoration',
    restorationIdentifier => 'Left', restorationParent => ['Main'], awaitParentMilliseconds => 10_000);
if ($thing->{restoration}{state} eq 'none') {
    call(3, 'encodeRestorableState', object => $thing->{object}, state => {n => $$});
    say {$journal} "left pushed $$";
}
while (defined(my $line = <$broker>)) { handle($json->decode($line)) }
